package receivers

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRelay_CallsEveryReceiverForEveryEvent(t *testing.T) {
	s, err := Serve(t.Context())
	require.NoError(t, err)
	urls := []string{s.URL(0), s.URL(1)}
	relay, err := StartRelay(t.Context(), urls, 3)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{}}
	sender := &Sender{Client: client, URL: relay.URL(), Bytes: 10}
	all := s.Expect(2 * 7)
	require.NoError(t, sender.SendUncounted(t.Context(), "not counted"))
	for i := range 7 {
		require.NoError(t, sender.Send(t.Context(), s, time.Now(), strconv.Itoa(i)))
		require.NoError(t, sender.SendUncounted(t.Context(), strconv.Itoa(i)), "a repeated event")
	}
	<-all
	require.NoError(t, relay.Close(t.Context()))
	client.CloseIdleConnections()
	require.NoError(t, s.Close())
	require.EqualValues(t, 14, s.Latencies().Count(), "the first call of each receiver for each event")
}

func TestCall_BeforeItsEventIsDueIsNotCounted(t *testing.T) {
	s := &Server{}
	all := s.Expect(1)
	s.noteCall(eventCall{"0", "earlier"})
	require.Zero(t, s.Latencies().Count())
	s.Due("now", time.Now())
	s.noteCall(eventCall{"0", "now"})
	<-all
	require.EqualValues(t, 1, s.Latencies().Count())
}

func TestSlowReceiver_CountsRepeatedCalls(t *testing.T) {
	s, err := Serve(t.Context())
	require.NoError(t, err)
	relay, err := StartRelay(t.Context(), []string{s.SlowURL()}, 3)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{}}
	sender := &Sender{Client: client, URL: relay.URL(), Bytes: 10}
	require.NoError(t, sender.SendUncounted(t.Context(), "once", "twice", "twice"))
	require.NoError(t, relay.Close(t.Context()), "all calls were made")
	client.CloseIdleConnections()
	last, repeated, err := s.AwaitSlow(t.Context(), []string{"once", "twice"})
	require.NoError(t, err)
	require.Equal(t, 1, repeated)
	require.False(t, last.IsZero())
	require.NoError(t, s.Close())
}
