// Package siftvault is a physical backend of HashiCorp Vault, and of whatever else is built on
// github.com/hashicorp/vault/sdk/physical, over a SiftKV store:
//
//	storage "siftkv" {
//	  path = "/var/lib/vault/data"
//	}
//
// for a Vault whose table of backends has the line
//
//	"siftkv": siftvault.New,
//
// Every write is on stable storage when it returns, and a transaction takes effect as a whole or not at
// all. One process has the store open at a time; the backend has no high availability.
package siftvault
