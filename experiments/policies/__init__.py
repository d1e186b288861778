"""Starting policies: from the Hugging Face hub or a folder, or built here. See `prepare.prepare_policy`."""
