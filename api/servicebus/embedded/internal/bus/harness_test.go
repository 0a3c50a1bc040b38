package bus

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// TestMain makes histories longer than is usual: it takes a few steps until
// something interesting is locked, expired or forwarded. The command line wins.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		sendUntilKilled(dir)
	}
	for name, value := range map[string]string{"rapid.checks": "100", "rapid.steps": "40"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// jsonCodec stands in for the encoding of the wire.
type jsonCodec struct{}

func (jsonCodec) Decode(section []byte) (map[string]any, error) {
	values := map[string]any{}
	if len(section) == 0 {
		return values, nil
	}
	d := json.NewDecoder(strings.NewReader(string(section)))
	d.UseNumber()
	if err := d.Decode(&values); err != nil {
		return nil, err
	}
	for k, v := range values {
		if n, ok := v.(json.Number); ok {
			if i, err := n.Int64(); err == nil {
				values[k] = i
			} else {
				values[k], _ = n.Float64()
			}
		}
	}
	return values, nil
}

func (c jsonCodec) Merge(section []byte, changes map[string]any, remove []string) ([]byte, error) {
	values, err := c.Decode(section)
	if err != nil {
		return nil, err
	}
	for k, v := range changes {
		values[k] = v
	}
	for _, k := range remove {
		delete(values, k)
	}
	return json.Marshal(values)
}

// manualClock moves when it is told to, and then calls back before it returns.
type manualClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*manualTimer
}

type manualTimer struct {
	clock *manualClock
	at    time.Time
	f     func()
}

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func newClock() *manualClock { return &manualClock{now: start} }

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manualClock) AfterFunc(d time.Duration, f func()) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &manualTimer{c, c.now.Add(d), f}
	c.timers = append(c.timers, t)
	return t
}

func (t *manualTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	at := slices.Index(t.clock.timers, t)
	if at < 0 {
		return false
	}
	t.clock.timers = slices.Delete(t.clock.timers, at, at+1)
	return true
}

// Advance moves the clock to each timer in turn, and then to the end.
func (c *manualClock) Advance(d time.Duration) {
	c.mu.Lock()
	end := c.now.Add(d)
	for {
		slices.SortStableFunc(c.timers, func(a, b *manualTimer) int { return a.at.Compare(b.at) })
		if len(c.timers) == 0 || c.timers[0].at.After(end) {
			break
		}
		t := c.timers[0]
		c.timers = c.timers[1:]
		if t.at.After(c.now) {
			c.now = t.at
		}
		c.mu.Unlock()
		t.f()
		c.mu.Lock()
	}
	c.now = end
	c.mu.Unlock()
}

// A world is a bus with what a test needs around it. Its methods answer when
// all that they caused is committed and delivered.
type world struct {
	t     tester
	bus   *Bus
	clock *manualClock
	store disk.Store
}

// A tester is a *testing.T, or the *rapid.T of one history.
type tester interface {
	require.TestingT
	Helper()
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, clock: newClock(), store: disk.NewMemory()}
	w.open()
	t.Cleanup(func() { require.NoError(t, w.bus.Close()) })
	return w
}

func (w *world) open() {
	var err error
	w.bus, err = Open(w.store, Options{Codec: jsonCodec{}, Clock: w.clock})
	require.NoError(w.t, err)
}

func (w *world) restart() {
	require.NoError(w.t, w.bus.Close())
	w.open()
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	w.clock.Advance(d)
	w.settled()
}

// settled waits until nothing is on its way: each look at the journal can
// bring more.
func (w *world) settled() {
	b := w.bus
	for {
		quiet := make(chan bool, 1)
		b.enter()
		b.reply(func(error) {
			b.mu.Lock()
			idle := b.broken != nil || len(b.journal.pending.writes) == 0 && b.journal.flushing == nil
			b.mu.Unlock()
			quiet <- idle
		})
		b.leave()
		if <-quiet {
			b.outbox.idle()
			return
		}
	}
}

// answer waits for the done of an operation.
func answer(operation func(done func(error))) error {
	answered := make(chan error, 1)
	operation(func(err error) { answered <- err })
	return <-answered
}

func (w *world) ok(operation func(done func(error))) {
	w.t.Helper()
	require.NoError(w.t, answer(operation))
	w.settled()
}

func (w *world) create(e Entity) {
	w.t.Helper()
	e.Kind = cmp.Or(e.Kind, Queue)
	w.ok(func(done func(error)) { w.bus.Create(e, done) })
}

func (w *world) send(path string, batch ...Message) {
	w.t.Helper()
	w.ok(func(done func(error)) { w.bus.Send(path, batch, done) })
}

func text(body string) Message { return Message{ID: "id-" + body, Sections: []byte(body)} }

func inSession(id, body string) Message {
	m := text(body)
	m.SessionID = &id
	return m
}

func properties(body string, values map[string]any) Message {
	m := text(body)
	m.ApplicationProperties, _ = json.Marshal(values)
	return m
}

// A consumer is a receiver that keeps what it gets.
type consumer struct {
	w    *world
	path string
	*Receiver
	mu   sync.Mutex
	got  []Delivery
	lost []error
}

func (c *consumer) options(mode Mode) ReceiverOptions {
	return ReceiverOptions{
		Mode: mode,
		Deliver: func(d Delivery) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.got = append(c.got, d)
		},
		Lost: func(err error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.lost = append(c.lost, err)
		},
	}
}

func (w *world) receiver(path string, mode Mode) *consumer {
	w.t.Helper()
	c := &consumer{w: w, path: path}
	r, err := w.bus.Receive(path, c.options(mode))
	require.NoError(w.t, err)
	c.Receiver = r
	return c
}

func (w *world) accept(path string, want SessionRequest) (*consumer, error) {
	w.t.Helper()
	c := &consumer{w: w, path: path}
	err := answer(func(done func(error)) {
		w.bus.AcceptSession(path, want, c.options(PeekLock), func(r *Receiver, err error) {
			c.Receiver = r
			done(err)
		})
	})
	return c, err
}

func (w *world) session(path, id string) *consumer {
	w.t.Helper()
	c, err := w.accept(path, SessionRequest{ID: &id})
	require.NoError(w.t, err)
	return c
}

// take asks for up to n messages more and returns what is there now.
func (c *consumer) take(n int) []Delivery {
	c.w.t.Helper()
	c.AddCredit(n)
	c.w.settled()
	c.AddCredit(-n)
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.got
	c.got = nil
	return got
}

func (c *consumer) bodies(n int) []string {
	c.w.t.Helper()
	return bodies(c.take(n))
}

func bodies(ds []Delivery) []string {
	all := []string{}
	for _, d := range ds {
		all = append(all, string(d.Sections))
	}
	return all
}

func (c *consumer) one() Delivery {
	c.w.t.Helper()
	got := c.take(1)
	require.Len(c.w.t, got, 1)
	return got[0]
}

func (w *world) settle(path string, how Settlement, ds ...Delivery) {
	w.t.Helper()
	w.ok(func(done func(error)) { w.bus.Settle(path, tokensOf(ds), how, done) })
}

func tokensOf(ds []Delivery) []LockToken {
	var tokens []LockToken
	for _, d := range ds {
		tokens = append(tokens, d.Token)
	}
	return tokens
}

func (c *consumer) settle(how Settlement, ds ...Delivery) {
	c.w.t.Helper()
	c.w.settle(c.path, how, ds...)
}

func (w *world) counts(path string) Counts {
	w.t.Helper()
	c, err := w.bus.Counts(path)
	require.NoError(w.t, err)
	return c
}

func (d Delivery) property(name string) any {
	values, err := jsonCodec{}.Decode(d.ApplicationProperties)
	if err != nil {
		return fmt.Sprint(err)
	}
	return values[name]
}

// keys counts the keys of a table in the store.
func (w *world) keys(table byte) (n int) {
	require.NoError(w.t, w.store.View(func(r disk.Reader) error {
		r.Scan([]byte{table}, []byte{table + 1}, func(_, _ []byte) bool { n++; return true })
		return nil
	}))
	return n
}
