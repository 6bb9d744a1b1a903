"""The web page behind ``measureflow explore``: a server on this machine, and models exported for the browser."""
