// Package survey finds out what is in a store's directory and what is wrong with it, without opening the store. It
// inspects every file by itself, so that one damaged file does not hide the others.
//
// It changes nothing. kv.Verify, siftkv verify, siftkv stats and the repair of stores use it.
package survey
