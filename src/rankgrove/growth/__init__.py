"""Growing one regression tree on binned rows from a gradient and a hessian per row."""
