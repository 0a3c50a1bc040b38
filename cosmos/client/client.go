package client

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of a Client. The zero value is valid.
type Options struct {
	Containers []ContainerSpec // containers of the adapter, for checks and provisioning; empty: no check
	Retries    int             // number of retries that the requests of one call share; default 24, negative: none
	Formats    FormatObserver  // default: none
	// BackgroundUnits limits the request units per second of all background calls. After a throttled
	// request of any call, the limit is lower for a while. 0: no limit.
	BackgroundUnits float64
	Clock           func() time.Time      // default time.Now; measures the age of the containers' properties
	Random          func() uint64         // source of ids and jitter; default: the system's random numbers
	Logger          *slog.Logger          // default: none
	Registerer      prometheus.Registerer // default: none; clients may share a registerer
}

// A Client makes the calls of one adapter to a [Database]. It is safe for concurrent
// use.
type Client struct {
	db         *Database
	opts       Options
	metrics    *requestMetrics
	containers containerWatch
	pacer      *pacer // nil: background calls have no limit
}

// New returns a Client. It makes no request and starts no goroutine.
func New(db *Database, opts Options) *Client {
	opts.Retries = max(cmp.Or(opts.Retries, 24), 0)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Random == nil {
		opts.Random = systemRandom
	}
	c := &Client{
		db: db, opts: opts, metrics: newMetrics(opts.Registerer),
		containers: containerWatch{turn: make(chan struct{}, 1)},
	}
	if opts.BackgroundUnits > 0 {
		c.pacer = newPacer(opts.BackgroundUnits, opts.Clock)
	}
	return c
}

// Begin returns a call with a full budget. name identifies the call in metrics and errors.
func (c *Client) Begin(name string) *Call {
	// The first call of each name creates a counter of retries with the value 0.
	return &Call{client: c, name: name, retries: c.opts.Retries, retried: c.metrics.retries.WithLabelValues(name)}
}

// NewID returns a random UUID for a document or a write.
func (c *Client) NewID() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], c.opts.Random())
	binary.BigEndian.PutUint64(b[8:], c.opts.Random())
	b[6] = b[6]&0x0f | 0x40 // version 4
	b[8] = b[8]&0x3f | 0x80 // RFC 9562 variant
	t := hex.EncodeToString(b[:])
	return t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
}

// Jitter returns a random duration below d.
func (c *Client) Jitter(d time.Duration) time.Duration {
	return time.Duration(c.opts.Random() % uint64(max(d, 1))) //nolint:gosec // positive
}

func systemRandom() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return binary.BigEndian.Uint64(b[:])
}
