"""Rules whose constraints hold in the population with a stated probability, for any distribution of the rows."""
