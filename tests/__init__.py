"""A package of its own: some trainers install one of this name too, and a folder alone would lose to theirs."""
