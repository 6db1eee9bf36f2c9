// Package archtest checks the project's layers. Its tests fail for an import that points
// up, a dependency that an embedder should not pay for, a module that reaches into
// another, or a decoder without a bound on what it allocates.
package archtest
