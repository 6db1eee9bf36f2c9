// Package survey finds out what is in a store's directory and what is wrong with
// it, without opening the store: every file is looked at for itself, so that one
// damaged file does not hide the others.
//
// It changes nothing. Verify, Stats and package repair are made of it.
package survey
