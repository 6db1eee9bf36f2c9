package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter"

	"github.com/siftkv/siftkv/examples/guard/internal/servertest"
)

// reach asks Redis as the flags say, as the cache and as the filters do.
func reach(t *testing.T, f flags) (redis.UniversalClient, error) {
	t.Helper()
	f.RedisTimeout = time.Hour
	options, err := (&parts{}).redisOptions(f)
	require.NoError(t, err)
	options.DialTimeout = time.Hour
	client := redis.NewUniversalClient(options)
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		return client, err
	}
	sets, err := redisfilter.Open(t.Context(), options)
	if err == nil {
		require.NoError(t, sets.Close())
	}
	return client, err
}

// One address is enough to find a cluster.
func TestAClusterByOneAddress(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, "--cluster-enabled", "yes")
	if server == nil {
		return
	}
	admin := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = admin.Close() })
	require.NoError(t, admin.Do(t.Context(), "cluster", "addslotsrange", 0, 16383).Err())
	servertest.Await(t, func() bool { return admin.Set(t.Context(), "key", "", 0).Err() == nil })
	client, err := reach(t, flags{Redis: []string{server.Addr}, RedisCluster: true})
	require.NoError(t, err)
	require.IsType(t, &redis.ClusterClient{}, client)
	client, err = reach(t, flags{Redis: []string{server.Addr}})
	require.NoError(t, err)
	require.IsType(t, &redis.Client{}, client)
}

// A server whose certificate no public authority signed, and which wants one of its clients.
func TestCertificatesOfRedis(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	secure := servertest.FreeAddr(t)
	_, port, err := net.SplitHostPort(secure)
	require.NoError(t, err)
	server := servertest.Redis(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-ca-cert-file", cert, "--tls-auth-clients", "yes")
	if server == nil {
		return
	}
	f := flags{Redis: []string{secure}, RedisCA: cert, RedisCert: cert, RedisKey: key}
	_, err = reach(t, f)
	require.NoError(t, err)
	f.RedisCA, f.RedisTLS = "", true
	_, err = reach(t, f)
	require.ErrorContains(t, err, "unknown authority")
	f.RedisCA, f.RedisCert, f.RedisKey = cert, "", ""
	_, err = reach(t, f)
	require.Error(t, err, "it shows no certificate")

	for _, f := range []flags{{RedisCA: "/nowhere"}, {RedisCA: key}, {RedisCert: cert, RedisKey: cert}} {
		_, err := redisTLS(f)
		require.ErrorContains(t, err, "--redis-")
	}
}

// certificate returns the files of a certificate of 127.0.0.1, which signed itself, and of its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	data, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600))
		return path
	}
	return write("cert.pem", "CERTIFICATE", data), write("key.pem", "PRIVATE KEY", secret)
}
