"""Names, bytes and seals: what both kinds of files share."""
