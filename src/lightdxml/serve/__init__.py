"""`lightdxml serve`: models behind HTTP, in Annif's protocol and in our own, and a page for people.

`app.py` puts the parts together, `server.py` runs them. Only this package imports FastAPI and uvicorn.
"""
