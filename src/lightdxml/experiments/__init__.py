"""The methods that `lightdxml bench` compares, and the bench itself."""
