"""The optimiser: the most useful protocol that a guarantee allows, with a bound on all others.

It is read in the order in which a request is answered.

1. *The entry* is `optimum`: a request (`request`) goes to the one programme that answers it, `as_it_is`, `over_cone`,
   `over_distributions`, `wide`, `designed` or `invariant`. `problem` is what is optimised over: the joint distribution
   after `presolve`, and the `region` of its posteriors, with the `goal` that is maximised.
2. *A search* writes p_X as a mixture of posteriors (`split`): over all `vertices` where they are few (`search`), else
   by `columns`, with `central` and `input_groups` for dozens to hundreds of inputs, and `pairs` for two secrets; over
   sets of distributions by `cutting` for boxes and `robust` for the χ² set, round by round on the same searches.
3. *A pricer* finds the posteriors that a mixture lacks, and *certifies* that no other is worth more at some prices, by
   numbers that hold whatever a linear programme's tolerances were: `pricing` with `bounds` on boxes, `slopes` for
   numbers, `threshold_pricing` with `cell_programme` and `robust_pricing` over sets of distributions.
   `input_groups` bounds hundreds of inputs by such a bound for groups of them, and `pairs` two secrets in closed form.
4. *Integers* (`integers`, `repair`, `lattice`) are what is returned: of the split that was found, moved inside, and of
   what is known without a search (`floors`), the most useful weights that the guarantee itself, in whole numbers,
   decides to hold.

All work is charged to a `budget`, by formulas of sizes (`work`), and never to a clock.
"""
