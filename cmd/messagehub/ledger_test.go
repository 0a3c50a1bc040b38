package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A story is a ledger of five events in one cabinet, from one sender.
type story struct {
	*ledger
	clock time.Time
	sent  []marketEvent
}

func newStory() *story {
	s := &story{ledger: newLedger(), clock: day}
	for i := range 5 {
		e := marketEvent{ID: fmt.Sprintf("e%d", i), Recipient: "a", Origin: "Charges", ContentType: "c"}
		if i == 2 {
			e.Payload = []byte(`{"n":2}`)
		}
		s.sent = append(s.sent, e)
		s.send(0, &s.sent[i])
	}
	return s
}

// manifest is a body as the hub makes it: each event with its number and its
// payload.
func (s *story) manifest(events ...int) string {
	var lines []string
	for _, i := range events {
		line := fmt.Sprintf(`{"id":"e%d","recipient":"a","sequence":%d`, i, i+1)
		if p := s.sent[i].Payload; p != nil {
			line += `,"payload":` + string(p)
		}
		lines = append(lines, line+"}")
	}
	return "[" + strings.Join(lines, ",") + "]"
}

func (s *story) tick() time.Time {
	s.clock = s.clock.Add(time.Second)
	return s.clock
}

// take peeks and dequeues.
func (s *story) take(t *testing.T, id, body string) {
	t.Helper()
	require.NoError(t, s.peeked("a", id, []byte(body), s.tick()))
	s.dequeued("a", id, true, s.tick())
}

func TestALedgerIsContentWithEverythingOnceInOrder(t *testing.T) {
	s := newStory()
	s.take(t, "b1", s.manifest(0, 1))
	s.take(t, "b2", s.manifest(2, 3, 4))
	v := s.check()
	require.True(t, v.ok(), v.details())
	require.Equal(t, "0 lost, 0 duplicated, order kept", v.String())
	require.Equal(t, 2, s.size("a", "b1"))
}

func TestALedgerFindsWhatIsWrong(t *testing.T) {
	for _, tc := range []struct {
		name string
		tell func(t *testing.T, s *story)
		want string
	}{
		{"an event that never came", func(t *testing.T, s *story) {
			s.take(t, "b1", s.manifest(0, 1, 2, 3))
		}, "1 lost, 0 duplicated, order kept"},
		{"an event missing in the middle", func(t *testing.T, s *story) {
			s.take(t, "b1", s.manifest(0, 1, 3, 4))
		}, "1 lost, 0 duplicated, order broken in 1 places"},
		{"a bundle that was never confirmed", func(t *testing.T, s *story) {
			s.take(t, "b1", s.manifest(0, 1, 2))
			require.NoError(t, s.peeked("a", "b2", []byte(s.manifest(3, 4)), s.tick()))
		}, "2 lost, 0 duplicated, order kept"},
		{"an event in two bundles", func(t *testing.T, s *story) {
			s.take(t, "b1", s.manifest(0, 1, 2))
			s.take(t, "b2", s.manifest(2, 3, 4))
		}, "0 lost, 1 duplicated, order broken in 2 places"},
		{"an event twice in a bundle", func(t *testing.T, s *story) {
			s.take(t, "b1", s.manifest(0, 1, 2, 3, 4, 4))
		}, "0 lost, 1 duplicated, order broken in 2 places"},
		{"events swapped in a bundle", func(t *testing.T, s *story) {
			s.take(t, "b1", s.manifest(0, 2, 1, 3, 4))
		}, "0 lost, 0 duplicated, order broken in 4 places"},
		{"bundles in the wrong order of time", func(t *testing.T, s *story) {
			s.take(t, "b2", s.manifest(2, 3, 4))
			s.take(t, "b1", s.manifest(0, 1))
		}, "0 lost, 0 duplicated, order broken in 1 places"},
		{"a bundle confirmed twice", func(t *testing.T, s *story) {
			s.take(t, "b1", s.manifest(0, 1, 2, 3, 4))
			s.dequeued("a", "b1", true, s.tick())
		}, "0 lost, 0 duplicated, order kept, 1 other faults"},
		{"a body that changes", func(t *testing.T, s *story) {
			s.take(t, "b1", s.manifest(0, 1, 2, 3, 4))
			require.ErrorContains(t, s.peeked("a", "b1", []byte(s.manifest(0)), s.tick()), "its body is not the same as before")
		}, "0 lost, 0 duplicated, order kept, 1 other faults"},
		{"a payload that changes", func(t *testing.T, s *story) {
			s.take(t, "b1", s.manifest(0, 1))
			body := strings.Replace(s.manifest(2, 3, 4), `{"n":2}`, `{"n": 2}`, 1)
			require.ErrorContains(t, s.peeked("a", "b2", []byte(body), s.tick()), "event e2: its payload is not the one that was sent")
		}, "3 lost, 0 duplicated, order kept, 1 other faults"},
		{"an event of nobody", func(t *testing.T, s *story) {
			s.take(t, "b1", s.manifest(0, 1, 2, 3, 4))
			require.ErrorContains(t, s.peeked("a", "b2", []byte(`[{"id":"e9","recipient":"a"}]`), s.tick()), `event "e9" was never sent to this actor`)
		}, "0 lost, 0 duplicated, order kept, 1 other faults"},
		{"an event of another actor", func(t *testing.T, s *story) {
			s.take(t, "b1", s.manifest(0, 1, 2, 3, 4))
			require.ErrorContains(t, s.peeked("b", "b2", []byte(s.manifest(0)), s.tick()), "was never sent to this actor")
		}, "0 lost, 0 duplicated, order kept, 1 other faults"},
		{"a body that is no JSON", func(t *testing.T, s *story) {
			s.take(t, "b1", s.manifest(0, 1, 2, 3, 4))
			require.ErrorContains(t, s.peeked("a", "b2", []byte("["), s.tick()), "its body is not JSON")
		}, "0 lost, 0 duplicated, order kept, 1 other faults"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStory()
			tc.tell(t, s)
			v := s.check()
			require.Equal(t, tc.want, v.String(), v.details())
			require.False(t, v.ok())
			require.NotEmpty(t, v.details())
		})
	}
}

func TestTwoClientsOfAnActorMayLearnOfABundleLate(t *testing.T) {
	s := newStory()
	first, second := []byte(s.manifest(0, 1)), []byte(s.manifest(2, 3, 4))
	asked := s.tick()
	require.NoError(t, s.peeked("a", "b1", first, s.tick()))
	s.dequeued("a", "b1", true, s.tick())
	s.take(t, "b2", string(second))
	require.NoError(t, s.peeked("a", "b1", first, asked), "asked for in time, noted late")
	s.dequeued("a", "b1", false, s.tick())
	v := s.check()
	require.True(t, v.ok(), v.details())
}

func TestSendersMayBeMixedButNotTheOrderOfOne(t *testing.T) {
	s := newStory()
	other := marketEvent{ID: "o", Recipient: "a", Origin: "Charges", ContentType: "c"}
	s.send(1, &other)
	s.take(t, "b1", `[{"id":"e0","recipient":"a","sequence":1},{"id":"o","recipient":"a","sequence":7},{"id":"e1","recipient":"a","sequence":8}]`)
	s.take(t, "b2", `[{"id":"e2","recipient":"a","sequence":9,"payload":{"n":2}},{"id":"e3","recipient":"a","sequence":10},{"id":"e4","recipient":"a","sequence":11}]`)
	v := s.check()
	require.True(t, v.ok(), v.details())
}

func TestDetailsAreBounded(t *testing.T) {
	l := newLedger()
	for i := range 100 {
		l.send(0, &marketEvent{ID: fmt.Sprintf("e%03d", i), Recipient: "a"})
	}
	v := l.check()
	require.Equal(t, "100 lost, 0 duplicated, order kept", v.String())
	require.Equal(t, 21, strings.Count(v.details(), "\n"))
	require.Contains(t, v.details(), "lost: a e000\n")
	require.Contains(t, v.details(), "lost: and 80 more\n")
}
