"""What is computed: expressions, and the code made of them."""
