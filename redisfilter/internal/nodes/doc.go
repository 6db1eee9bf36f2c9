// Package nodes watches the Redis servers that hold a program's sets: which server answers for which
// hash slot, and whether it is still the process that it was.
//
// A server that was restarted, or a replica that was promoted, may lack writes that were acknowledged. Neither says so;
// but each has an identity, its run id together with the id of its replication history, that such an event changes. A
// Watch asks for the identities twice a second, and on every new connection. A caller that was told "absent" then asks
// the Watch whether the server that said so is one that it trusts.
package nodes
