//! Rules of `x-kubernetes-validations`, evaluated with the libraries that the API server gives them.
