package s3

import (
	"testing"

	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

func TestContract(t *testing.T) {
	v := newServer(t)
	objstoretest.Run(t, func(t *testing.T) objstore.Store { return v.open(t) })
}

// TestContractInParts uploads all that can be in parts, and reads with hedges all the time.
func TestContractInParts(t *testing.T) {
	v := newServer(t)
	objstoretest.Run(t, func(t *testing.T) objstore.Store {
		return v.open(t, func(c *Config) { c.PartSize, c.HedgeAfter = minPartSize, 1 })
	})
}

func TestContractOfTwoGateways(t *testing.T) {
	a := newServer(t)
	b := a
	if a.own {
		dir := gatewayDir(t)
		a, b = startGateway(t, dir), startGateway(t, dir)
		a.makeBucket(t)
	}
	objstoretest.RunClients(t, func(t *testing.T) (objstore.Store, objstore.Store) {
		s := a.open(t)
		return s, s.by(t, b)
	})
}
