package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/examples/guard/internal/guard"
)

type flags struct {
	Listen string `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address to serve on."`

	Redis         []string `placeholder:"ADDR" help:"Redis; several are a cluster. Default: one in this process."`
	RedisMaster   string   `placeholder:"NAME" help:"The addresses are Sentinels of this master."`
	RedisUser     string   `env:"GUARD_REDIS_USER" placeholder:"NAME" help:"User of Redis."`
	RedisPassword string   `env:"GUARD_REDIS_PASSWORD" placeholder:"WORD" help:"Its password."`
	RedisCluster  bool     `help:"A single address of --redis is of a cluster."`
	RedisTLS      bool     `name:"redis-tls" help:"Speak TLS to Redis. SSL_CERT_FILE names other authorities."`

	RedisTimeout time.Duration `default:"250ms" help:"Of a question to a filter or the cache; a later answer is none."`

	Postgres string `env:"GUARD_POSTGRES" placeholder:"URL" help:"Default: SQLite."`
	Data     string `placeholder:"DIR" type:"path" help:"Directory of SQLite. Default: one that ends with the process."`
	Users    int    `default:"100000" help:"Users 1 to this, user1 and so on, are made if there are none."`

	Capacity int     `default:"125000" help:"Keys that the filters are sized for; they grow beyond it."`
	Rate     float64 `default:"0.01" help:"Their share of false positives."`
	Bans     int     `default:"100000" help:"Bans that the black list is sized for; beyond it a larger one is loaded."`
	Mirror   bool    `help:"Answer from a mirror of the filters, which learns of others' sign-ups within a second."`
	Rebuild  bool    `help:"Load the filters again: after others wrote or deleted rows, or for other sizes."`
	Fail     string  `enum:"open,closed" default:"open" help:"What a filter cannot tell: ask the database, or refuse."`

	DBConns  int           `name:"db-conns" default:"16" help:"Statements that the database gets at once."`
	DBQueue  int           `name:"db-queue" default:"128" help:"Requests that wait for their turn; more get 503."`
	Timeout  time.Duration `default:"2s" help:"Of a request."`
	Grace    time.Duration `default:"5s" help:"From what the filters are told to the commit of its row, at most."`
	CacheTTL time.Duration `name:"cache-ttl" default:"5m" help:"How long the cache keeps rows."`
	NullTTL  time.Duration `name:"null-ttl" default:"5s" help:"How long it keeps that there is no such row."`

	Page     bool    `help:"Show what the filters keep from the database, live, at /, and attack from there."`
	Visitors float64 `default:"1000" help:"Visitors a second of an attack."`

	Verbose bool `short:"v" help:"Log refusals and what a layer did not answer."`
}

// Validate is called by kong.
func (f *flags) Validate() error {
	switch {
	case f.Users < 0 || int64(f.Users) > guard.MaxSeed:
		return fmt.Errorf("--users %d: it is from 0 to %d", f.Users, guard.MaxSeed)
	case f.Users < 2 && f.Page:
		return errors.New("--page plays attacks: it needs --users of at least 2")
	case !(f.Visitors > 0 && f.Visitors <= 1e6):
		return fmt.Errorf("--visitors %g: it is above 0 and at most a million", f.Visitors)
	case f.Capacity < 1 || f.Bans < 1:
		return errors.New("--capacity and --bans are at least 1")
	case !(f.Rate >= 1e-5 && f.Rate <= 0.5):
		return fmt.Errorf("--rate %g: it is from 0.00001 to 0.5, such as 0.01", f.Rate)
	case f.DBConns < 1 || f.DBQueue < 0:
		return errors.New("--db-conns is at least 1, --db-queue at least 0")
	case f.Timeout <= 0 || f.Timeout >= f.Grace/2: // to the start of a statement, and as much to its end
		return fmt.Errorf("--timeout %v: it is above 0 and below half of --grace %v", f.Timeout, f.Grace)
	case f.RedisTimeout <= 0 || f.RedisTimeout > f.Timeout:
		return fmt.Errorf("--redis-timeout %v: it is above 0 and at most --timeout", f.RedisTimeout)
	case f.CacheTTL < time.Millisecond || f.NullTTL < time.Millisecond:
		return errors.New("--cache-ttl and --null-ttl are at least 1ms")
	case f.Postgres != "" && f.Data != "":
		return errors.New("--data is SQLite's directory, and --postgres is given: leave one of them out")
	case len(f.Redis) > 0 && f.Postgres == "" && f.Data == "":
		return errors.New("--redis needs --postgres or --data: it would outlive a database that ends with the process")
	case len(f.Redis) == 0 && f.Mirror:
		return errors.New("--mirror needs --redis ADDR: the Redis in this process does not tell of changes")
	case len(f.Redis) == 0 && (f.RedisMaster+f.RedisUser+f.RedisPassword != "" || f.RedisCluster || f.RedisTLS):
		return errors.New("a setting of Redis without --redis ADDR")
	}
	return nil
}
