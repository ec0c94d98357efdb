"""What the documentation is generated with: Markdown to HTML, and the pages that come from the code itself."""
