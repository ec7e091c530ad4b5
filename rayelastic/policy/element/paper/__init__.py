"""The papers' controller: PLDI'17 and Middleware'19, as printed."""
