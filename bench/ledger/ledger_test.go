package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/ledger"
)

// A story is a ledger with five sent events of one sender in one cabinet.
type story struct{ *ledger.Ledger }

func newStory(o ledger.Options) story {
	s := story{ledger.New(o)}
	for i := range 5 {
		s.Send(recordedEvent(i))
	}
	return s
}

func recordedEvent(i int) ledger.Event {
	return ledger.Event{Recipient: "a", ID: fmt.Sprintf("e%d", i), Cabinet: "c", Content: contentOf(i)}
}

func contentOf(i int) ledger.Digest { return ledger.DigestOf(fmt.Append(nil, i)) }

// elements returns events with their sequence numbers.
func elements(events ...int) (all []ledger.Element) {
	for _, i := range events {
		all = append(all, ledger.Element{ID: fmt.Sprintf("e%d", i), Sequence: int64(i + 1), Content: contentOf(i)})
	}
	return all
}

func (s story) receive(actor, id string, start ledger.Moment, all []ledger.Element) error {
	_, err := s.Receive(actor, id, fmt.Append(nil, all), start, func() ([]ledger.Element, error) { return all, nil })
	return err
}

// take receives and confirms a bundle.
func (s story) take(t *testing.T, id string, events ...int) {
	t.Helper()
	require.NoError(t, s.receive("a", id, s.Now(), elements(events...)))
	s.Confirm("a", id, true)
}

func TestCheck_AcceptsEveryEventOnceInOrder(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		s := newStory(ledger.Options{InOrder: inOrder})
		s.take(t, "b1", 0, 1)
		require.Equal(t, 3, s.Outstanding())
		s.take(t, "b2", 2, 3, 4)
		v := s.Check()
		require.True(t, v.OK(), v.Details())
		require.Equal(t, "0 lost, 0 duplicated, order kept", v.String())
		require.Len(t, s.Bundle("a", "b1").Elements, 2)
		require.Zero(t, s.Outstanding("a"))
		require.Empty(t, s.Undelivered())
	}
}

func TestCheck_FindsEveryViolation(t *testing.T) {
	for _, tc := range []struct {
		name  string
		plays func(t *testing.T, s story)
		want  string
	}{
		{"an event that never came", func(t *testing.T, s story) {
			s.take(t, "b1", 0, 1, 2, 3)
		}, "1 lost, 0 duplicated, order kept"},
		{"an event missing in the middle", func(t *testing.T, s story) {
			s.take(t, "b1", 0, 1, 3, 4)
		}, "1 lost, 0 duplicated, order broken in 1 places"},
		{"a bundle that was never confirmed", func(t *testing.T, s story) {
			s.take(t, "b1", 0, 1, 2)
			require.NoError(t, s.receive("a", "b2", s.Now(), elements(3, 4)))
		}, "2 lost, 0 duplicated, order kept"},
		{"an event in two bundles", func(t *testing.T, s story) {
			s.take(t, "b1", 0, 1, 2)
			s.take(t, "b2", 2, 3, 4)
		}, "0 lost, 1 duplicated, order broken in 2 places"},
		{"an event twice in a bundle", func(t *testing.T, s story) {
			s.take(t, "b1", 0, 1, 2, 3, 4, 4)
		}, "0 lost, 1 duplicated, order broken in 2 places"},
		{"events swapped in a bundle", func(t *testing.T, s story) {
			s.take(t, "b1", 0, 2, 1, 3, 4)
		}, "0 lost, 0 duplicated, order broken in 4 places"},
		{"bundles in the wrong order of time", func(t *testing.T, s story) {
			s.take(t, "b2", 2, 3, 4)
			s.take(t, "b1", 0, 1)
		}, "0 lost, 0 duplicated, order broken in 1 places"},
		{"a sequence number of two events", func(t *testing.T, s story) {
			s.Send(ledger.Event{Recipient: "a", ID: "e5", Cabinet: "other"})
			s.take(t, "b1", 0, 1, 2, 3, 4)
			require.NoError(t, s.receive("a", "b2", s.Now(), []ledger.Element{{ID: "e5", Sequence: 3}}))
			s.Confirm("a", "b2", true)
		}, "0 lost, 0 duplicated, order broken in 1 places"},
		{"a bundle confirmed twice", func(t *testing.T, s story) {
			s.take(t, "b1", 0, 1, 2, 3, 4)
			s.Confirm("a", "b1", true)
		}, "0 lost, 0 duplicated, order kept, 1 other faults"},
		{"a bundle that comes again", func(t *testing.T, s story) {
			s.take(t, "b1", 0, 1, 2, 3, 4)
			require.ErrorContains(t, s.receive("a", "b1", s.Now(), elements(0, 1, 2, 3, 4)), "it comes again after its Dequeue")
		}, "0 lost, 0 duplicated, order kept, 1 other faults"},
		{"a body that changes", func(t *testing.T, s story) {
			s.take(t, "b1", 0, 1, 2, 3, 4)
			require.ErrorContains(t, s.receive("a", "b1", s.Now(), elements(0)), "its body is not the same as before")
		}, "0 lost, 0 duplicated, order kept, 1 other faults"},
		{"a payload that changes", func(t *testing.T, s story) {
			s.take(t, "b1", 0, 1)
			changed := elements(2, 3, 4)
			changed[0].Content[0]++
			require.ErrorContains(t, s.receive("a", "b2", s.Now(), changed), "event e2: its content is not the one that was sent")
		}, "3 lost, 0 duplicated, order kept, 1 other faults"},
		{"an event that was never sent", func(t *testing.T, s story) {
			s.take(t, "b1", 0, 1, 2, 3, 4)
			require.ErrorContains(t, s.receive("a", "b2", s.Now(), elements(9)), `event "e9" was never sent to this actor`)
		}, "0 lost, 0 duplicated, order kept, 1 other faults"},
		{"an event of another actor", func(t *testing.T, s story) {
			s.take(t, "b1", 0, 1, 2, 3, 4)
			require.ErrorContains(t, s.receive("b", "b2", s.Now(), elements(0)), "was never sent to this actor")
		}, "0 lost, 0 duplicated, order kept, 1 other faults"},
		{"events of two cabinets", func(t *testing.T, s story) {
			s.Send(ledger.Event{Recipient: "a", ID: "e5", Cabinet: "other", Unsure: true})
			s.take(t, "b1", 0, 1, 2, 3)
			require.ErrorContains(t, s.receive("a", "b2", s.Now(), elements(4, 5)), "it has events of the cabinets c and other")
		}, "1 lost, 0 duplicated, order kept, 1 other faults"},
		{"a bundle without events", func(t *testing.T, s story) {
			s.take(t, "b1", 0, 1, 2, 3, 4)
			require.ErrorContains(t, s.receive("a", "b2", s.Now(), nil), "it has no events")
		}, "0 lost, 0 duplicated, order kept, 1 other faults"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStory(ledger.Options{})
			tc.plays(t, s)
			v := s.Check()
			require.Equal(t, tc.want, v.String(), v.Details())
			require.False(t, v.OK())
			require.NotEmpty(t, v.Details())
		})
	}
}

func TestReceive_InOrderReportsViolationsImmediately(t *testing.T) {
	for _, tc := range []struct {
		name    string
		bundles [][]int
		rule    ledger.Rule
		want    string
	}{
		{"an event in two bundles", [][]int{{0, 1}, {1, 2}}, ledger.RuleOnce, "event e1 is in bundle b0 and in bundle b1"},
		{"an event twice in a bundle", [][]int{{0, 0}}, ledger.RuleOnce, "event e0 is in bundle b0 and in bundle b0"},
		{"an event before another", [][]int{{1}}, ledger.RuleOrder, "event 1 comes where event 0 should"},
		{"bundles that overtake", [][]int{{0}, {2, 3}}, ledger.RuleOrder, "event 2 comes where event 1 should"},
		{"numbers that descend", [][]int{{0, 2, 1}}, ledger.RuleOrder, "sequence number 2 comes after 3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStory(ledger.Options{InOrder: true})
			last := len(tc.bundles) - 1
			for i, events := range tc.bundles[:last] {
				s.take(t, fmt.Sprintf("b%d", i), events...)
			}
			err := s.receive("a", fmt.Sprintf("b%d", last), s.Now(), elements(tc.bundles[last]...))
			require.ErrorContains(t, err, tc.want)
			var found *ledger.Violation
			require.ErrorAs(t, err, &found)
			require.Equal(t, tc.rule, found.Rule)
			require.False(t, s.Check().OK())
		})
	}
}

func TestReceive_ReportsABodyThatCannotBeRead(t *testing.T) {
	s := newStory(ledger.Options{})
	isNew, err := s.Receive("a", "b1", []byte("["), 0, func() ([]ledger.Element, error) { return nil, fmt.Errorf("its body is not JSON") })
	require.True(t, isNew)
	require.EqualError(t, err, "bundle b1 of a: its body is not JSON")
}

func TestReceive_AcceptsALateReportOfAnEarlierRequest(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		s := newStory(ledger.Options{InOrder: inOrder})
		start := s.Now()
		s.take(t, "b1", 0, 1)
		s.take(t, "b2", 2, 3, 4)
		require.NoError(t, s.receive("a", "b1", start, elements(0, 1)), "asked for in time, noted late")
		s.Confirm("a", "b1", false)
		v := s.Check()
		require.True(t, v.OK(), v.Details())
	}
}

func TestSenders_AreIndependentAndEachKeepsItsOrder(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		s := newStory(ledger.Options{InOrder: inOrder})
		s.Send(ledger.Event{Recipient: "a", ID: "e7", Cabinet: "c", Sender: 1, Content: contentOf(7)})
		all := []ledger.Element{{ID: "e0", Sequence: 1}, {ID: "e7", Sequence: 7}, {ID: "e1", Sequence: 8}}
		require.NoError(t, s.receive("a", "b1", s.Now(), all))
		s.Confirm("a", "b1", true)
		require.NoError(t, s.receive("a", "b2", s.Now(), []ledger.Element{{ID: "e2"}, {ID: "e3"}, {ID: "e4"}}))
		s.Confirm("a", "b2", true)
		v := s.Check()
		require.True(t, v.OK(), v.Details())
	}
}

func TestAnyOrder_ExemptsASender(t *testing.T) {
	s := story{ledger.New(ledger.Options{InOrder: true})}
	for i := range 2 {
		e := recordedEvent(i)
		e.AnyOrder = true
		s.Send(e)
	}
	require.NoError(t, s.receive("a", "b1", s.Now(), []ledger.Element{{ID: "e1", Sequence: 1}, {ID: "e0", Sequence: 2}}))
	s.Confirm("a", "b1", true)
	require.True(t, s.Check().OK())
}

func TestUnsureEvents_MayBeMissing(t *testing.T) {
	s := story{ledger.New(ledger.Options{InOrder: true})}
	for i := range 3 {
		e := recordedEvent(i)
		e.Unsure = i != 2
		s.Send(e)
	}
	require.False(t, s.IsReceived("a", "e1"))
	s.take(t, "b1", 1, 2)
	require.True(t, s.IsReceived("a", "e1"))
	s.Accept("a", "e1") // the bundle was received before the sender knew that the event was stored
	require.True(t, s.Check().OK())
	require.Zero(t, s.Outstanding())
	s.Accept("a", "e0")
	require.Equal(t, 1, s.Outstanding("a"))
	require.Equal(t, []string{"e0 of a c, in no bundle"}, s.Undelivered())
	require.Equal(t, "1 lost, 0 duplicated, order kept", s.Check().String())
}

func TestWithdrawnEvents_MayBeDeliveredAgain(t *testing.T) {
	s := newStory(ledger.Options{InOrder: true})
	require.NoError(t, s.receive("a", "b1", s.Now(), elements(0, 1)))
	s.Withdraw("a", "b1", true)
	require.NoError(t, s.receive("a", "b2", s.Now(), elements(0, 1, 2)))
	event, bundle := s.Replaced("a", "b1")
	require.Equal(t, []string{"e0", "b2"}, []string{event, bundle})
	event, _ = s.Replaced("a", "b2")
	require.Empty(t, event)
	require.Empty(t, s.Confirm("a", "b1", false), "its events are in another bundle")
	require.Equal(t, []string{"e0", "e1", "e2"}, s.Confirm("a", "b2", true))
	s.take(t, "b3", 3, 4)
	v := s.Check()
	require.True(t, v.OK(), v.Details())

	s.Withdraw("a", "b3", true)
	require.ErrorContains(t, s.receive("a", "b4", s.Now(), elements(4, 3)), "event 4 comes where event 3 should")
}

func TestExpiredEvent_MayBeInOneMoreBundle(t *testing.T) {
	s := newStory(ledger.Options{InOrder: true})
	s.take(t, "b1", 0, 1)
	s.Expire("a", "e0")
	require.NoError(t, s.receive("a", "b2", s.Now(), []ledger.Element{{ID: "e0", Sequence: 50}}))
	require.NoError(t, s.receive("a", "b3", s.Now(), []ledger.Element{{ID: "e2", Sequence: 51}}), "the order of the other events is unchanged")
	s.Confirm("a", "b2", true)
	s.Confirm("a", "b3", true)
	v := s.Check()
	require.Empty(t, v.Duplicated, v.Details())
	require.ErrorContains(t, s.receive("a", "b4", s.Now(), []ledger.Element{{ID: "e0", Sequence: 52}}), "event e0 is in bundle b2 and in bundle b4")
}

// The bundle that contains the repetition of an event is withdrawn, so a later bundle contains the event too.
func TestExpiredEvent_MayComeAgainAfterAWithdrawal(t *testing.T) {
	s := newStory(ledger.Options{InOrder: true})
	s.take(t, "b1", 0, 1)
	s.Expire("a", "e0")
	require.NoError(t, s.receive("a", "b2", s.Now(), []ledger.Element{{ID: "e0", Sequence: 50}}))
	s.Confirm("a", "b2", true)
	s.Withdraw("a", "b2", true)
	require.NoError(t, s.receive("a", "b3", s.Now(), []ledger.Element{{ID: "e0", Sequence: 50}, {ID: "e2", Sequence: 51}}))
	require.ErrorContains(t, s.receive("a", "b4", s.Now(), elements(4)), "event 4 comes where event 3 should", "the order of the other events is unchanged")
}

func TestReopenedBundle_MayBeReceivedAgain(t *testing.T) {
	s := newStory(ledger.Options{InOrder: true})
	s.take(t, "b1", 0, 1)
	s.Reopen("a", "b1")
	require.NoError(t, s.receive("a", "b1", s.Now(), elements(0, 1)))
	require.Empty(t, s.Confirmed())
	require.Empty(t, s.Confirm("a", "b1", true), "its events were delivered before")
	require.Equal(t, s.Bundle("a", "b1"), s.Confirmed()[0])
	require.Zero(t, s.Confirmed()[0].Position())
}

func TestReport_BecomesPartOfTheVerdict(t *testing.T) {
	s := newStory(ledger.Options{})
	s.take(t, "b1", 0, 1, 2, 3, 4)
	require.EqualError(t, s.Report("bundle %s is strange", "b1"), "bundle b1 is strange")
	require.Equal(t, "fault: bundle b1 is strange\n", s.Check().Details())
	events, bundles := s.Size()
	require.Equal(t, []int{5, 1}, []int{events, bundles})
}

func TestDetails_AreBounded(t *testing.T) {
	l := ledger.New(ledger.Options{})
	for i := range 100 {
		l.Send(ledger.Event{ID: fmt.Sprintf("e%03d", i), Recipient: "a"})
	}
	v := l.Check()
	require.Equal(t, "100 lost, 0 duplicated, order kept", v.String())
	require.Equal(t, 21, strings.Count(v.Details(), "\n"))
	require.Contains(t, v.Details(), "lost: a e000\n")
	require.Contains(t, v.Details(), "lost: and 80 more\n")
}
