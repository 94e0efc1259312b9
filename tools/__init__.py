"""What the project is kept with: the site of the documentation, and its picture of the layers."""
