"""Scripts that build the models Toolfinch ships."""
