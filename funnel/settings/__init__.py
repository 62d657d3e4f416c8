"""What a release spec may say, a file for each section or a few of them; `funnel.spec` is the whole."""
