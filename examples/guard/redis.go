package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter/inprocess"
)

// dialTime is how long a connection to Redis may take to come about.
const dialTime = 500 * time.Millisecond

// redisOptions returns how to reach Redis, and starts one if none is named.
func (p *parts) redisOptions(f flags) (*redis.UniversalOptions, error) {
	o := &redis.UniversalOptions{
		Addrs: f.Redis, MasterName: f.RedisMaster, Username: f.RedisUser, Password: f.RedisPassword,
		IsClusterMode: f.RedisCluster,
		// Requests bound every operation, and none waits for a Redis that is away.
		ContextTimeoutEnabled: true, DialTimeout: dialTime, DialerRetries: 1, MaxRetries: 1, MinRetryBackoff: -1,
	}
	if len(f.Redis) > 0 {
		var err error
		o.TLSConfig, err = redisTLS(f)
		return o, err
	}
	server, err := inprocess.Start()
	if err != nil {
		return nil, err
	}
	p.onClose(func() error { server.Close(); return nil })
	p.Logger.Info("Redis runs in this process and ends with it; name one by --redis ADDR")
	o.Addrs = []string{server.Addr()}
	return o, nil
}

// redisTLS returns how connections to Redis are encrypted; nil if they are not.
func redisTLS(f flags) (*tls.Config, error) {
	if !f.speaksTLS() {
		return nil, nil //nolint:nilnil // as in the options of go-redis
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.RedisCA != "" {
		text, err := os.ReadFile(f.RedisCA)
		if err != nil {
			return nil, fmt.Errorf("--redis-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--redis-ca %s: there is no certificate in it", f.RedisCA)
		}
	}
	if f.RedisCert != "" {
		pair, err := tls.LoadX509KeyPair(f.RedisCert, f.RedisKey)
		if err != nil {
			return nil, fmt.Errorf("--redis-cert: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
