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

// TestMain makes rapid generate longer histories, because short histories rarely lock, expire or forward messages.
// Command-line flags take precedence.
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

// jsonCodec is a Codec that encodes application properties as JSON.
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

// manualClock is a Clock whose time changes only in Advance. Advance calls the functions of due timers before it
// returns.
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

// Advance moves the time forward by d. It stops at each timer on the way and calls its function.
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

// A busFixture is a bus with its store and clock. Each method waits until all writes are committed and all callbacks
// have returned.
type busFixture struct {
	t     tester
	bus   *Bus
	clock *manualClock
	store disk.Store
}

// A tester is a *testing.T or a *rapid.T.
type tester interface {
	require.TestingT
	Helper()
}

func newFixture(t testing.TB) *busFixture {
	w := &busFixture{t: t, clock: newClock(), store: disk.NewMemory()}
	w.openBus()
	t.Cleanup(func() { require.NoError(t, w.bus.Close()) })
	return w
}

func (w *busFixture) openBus() {
	var err error
	w.bus, err = Open(w.store, Options{Codec: jsonCodec{}, Clock: w.clock})
	require.NoError(w.t, err)
}

func (w *busFixture) restartBus() {
	require.NoError(w.t, w.bus.Close())
	w.openBus()
}

// advanceTime moves the clock forward by d.
func (w *busFixture) advanceTime(d time.Duration) {
	w.clock.Advance(d)
	w.waitSettled()
}

// waitSettled waits until no write is pending and no callback is running. It repeats the check, because callbacks may
// write and commits may start callbacks.
func (w *busFixture) waitSettled() {
	b := w.bus
	for {
		quiet := make(chan bool, 1)
		b.lockAndCatchUp()
		b.replyCommitted(func(error) {
			b.mu.Lock()
			idle := b.broken != nil || len(b.journal.pending.writes) == 0 && b.journal.flushing == nil
			b.mu.Unlock()
			quiet <- idle
		})
		b.scheduleAndUnlock()
		if <-quiet {
			b.callbacks.waitIdle()
			return
		}
	}
}

// awaitDone runs an operation and returns the error that the operation passes to done.
func awaitDone(operation func(done func(error))) error {
	answered := make(chan error, 1)
	operation(func(err error) { answered <- err })
	return <-answered
}

func (w *busFixture) requireDone(operation func(done func(error))) {
	w.t.Helper()
	require.NoError(w.t, awaitDone(operation))
	w.waitSettled()
}

func (w *busFixture) createEntity(e Entity) {
	w.t.Helper()
	e.Kind = cmp.Or(e.Kind, Queue)
	w.requireDone(func(done func(error)) { w.bus.Create(e, done) })
}

func (w *busFixture) sendBatch(path string, batch ...Message) {
	w.t.Helper()
	w.requireDone(func(done func(error)) { w.bus.Send(path, batch, done) })
}

func textMessage(body string) Message { return Message{ID: "id-" + body, Sections: []byte(body)} }

func inSession(id, body string) Message {
	m := textMessage(body)
	m.SessionID = &id
	return m
}

func messageWith(body string, values map[string]any) Message {
	m := textMessage(body)
	m.ApplicationProperties, _ = json.Marshal(values)
	return m
}

// A testConsumer is a receiver that records its deliveries.
type testConsumer struct {
	w    *busFixture
	path string
	*Receiver
	mu   sync.Mutex
	got  []Delivery
	lost []error
}

func (c *testConsumer) receiverOptions(mode Mode) ReceiverOptions {
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

func (w *busFixture) newReceiver(path string, mode Mode) *testConsumer {
	w.t.Helper()
	c := &testConsumer{w: w, path: path}
	r, err := w.bus.Receive(path, c.receiverOptions(mode))
	require.NoError(w.t, err)
	c.Receiver = r
	return c
}

func (w *busFixture) acceptSession(path string, want SessionRequest) (*testConsumer, error) {
	w.t.Helper()
	c := &testConsumer{w: w, path: path}
	err := awaitDone(func(done func(error)) {
		w.bus.AcceptSession(path, want, c.receiverOptions(PeekLock), func(r *Receiver, err error) {
			c.Receiver = r
			done(err)
		})
	})
	return c, err
}

func (w *busFixture) holdSession(path, id string) *testConsumer {
	w.t.Helper()
	c, err := w.acceptSession(path, SessionRequest{ID: &id})
	require.NoError(w.t, err)
	return c
}

// takeDeliveries requests up to n messages and returns the messages that were delivered.
func (c *testConsumer) takeDeliveries(n int) []Delivery {
	c.w.t.Helper()
	c.AddCredit(n)
	c.w.waitSettled()
	c.AddCredit(-n)
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.got
	c.got = nil
	return got
}

func (c *testConsumer) takeBodies(n int) []string {
	c.w.t.Helper()
	return bodiesOf(c.takeDeliveries(n))
}

func bodiesOf(ds []Delivery) []string {
	all := []string{}
	for _, d := range ds {
		all = append(all, string(d.Sections))
	}
	return all
}

func (c *testConsumer) takeOne() Delivery {
	c.w.t.Helper()
	got := c.takeDeliveries(1)
	require.Len(c.w.t, got, 1)
	return got[0]
}

func (w *busFixture) settleDeliveries(path string, how Settlement, ds ...Delivery) {
	w.t.Helper()
	w.requireDone(func(done func(error)) { w.bus.Settle(path, tokensOf(ds), how, done) })
}

func tokensOf(ds []Delivery) []LockToken {
	var tokens []LockToken
	for _, d := range ds {
		tokens = append(tokens, d.Token)
	}
	return tokens
}

func (c *testConsumer) settleDeliveries(how Settlement, ds ...Delivery) {
	c.w.t.Helper()
	c.w.settleDeliveries(c.path, how, ds...)
}

func (w *busFixture) countsOf(path string) Counts {
	w.t.Helper()
	c, err := w.bus.Counts(path)
	require.NoError(w.t, err)
	return c
}

func (d Delivery) propertyOf(name string) any {
	values, err := jsonCodec{}.Decode(d.ApplicationProperties)
	if err != nil {
		return fmt.Sprint(err)
	}
	return values[name]
}

// countKeys returns the number of keys in a table of the store.
func (w *busFixture) countKeys(table byte) (n int) {
	require.NoError(w.t, w.store.View(func(r disk.Reader) error {
		r.Scan([]byte{table}, []byte{table + 1}, func(_, _ []byte) bool { n++; return true })
		return nil
	}))
	return n
}
