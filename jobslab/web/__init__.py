"""What the API is made of, an idea a file; `api` puts it together."""
