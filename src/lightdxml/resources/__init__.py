"""What training needs of the machine, and what the machine has."""
