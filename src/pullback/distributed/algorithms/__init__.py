"""Parts that training over several ranks is made of."""
