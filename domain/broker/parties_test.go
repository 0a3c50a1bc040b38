package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// parties is a broker without a delivery engine.
type parties struct {
	ports                       broker.Ports
	channel, consumer, producer domain.PartyID
	now                         time.Time
}

func newParties(t *testing.T) *parties {
	t.Helper()
	cursors := memory.NewCursors(time.Now)
	p := &parties{
		now:   time.Now(),
		ports: broker.Ports{Parties: memory.NewParties(), Streams: memory.NewStreams(21*24*time.Hour, time.Now), Cursors: cursors, Shards: cursors},
	}
	var err error
	p.channel, err = domain.Channels.Parse("orders")
	require.NoError(t, err)
	p.consumer, err = p.channel.Consumers().Parse("billing")
	require.NoError(t, err)
	p.producer, err = domain.Producers.Parse("p")
	require.NoError(t, err)
	return p
}

// newNode returns the broker of another node.
func (p *parties) newNode() *broker.Service {
	return broker.New(p.ports, plainSealer{}, broker.Options{Clock: func() time.Time { return p.now }})
}

func (p *parties) put(t *testing.T, s *broker.Service, id domain.PartyID, token string) bool {
	t.Helper()
	d := broker.Draft{Token: &token}
	if id.IsConsumer() {
		d.CallbackURL = "https://billing.example/"
	}
	_, created, err := s.PutParty(t.Context(), adminCredentials, id, d, broker.Condition{})
	require.NoError(t, err)
	return created
}

func (p *parties) broadcast(s *broker.Service) (string, error) {
	id, _, err := s.Broadcast(context.Background(), producerCredentials, p.channel, &broker.Broadcast{Payload: []byte("x")})
	return id, err
}

func TestAReplacedToken_IsRefusedEverywhereWithin5Seconds(t *testing.T) {
	p := newParties(t)
	one, other := p.newNode(), p.newNode()
	p.put(t, one, p.producer, "producer-token")
	p.put(t, one, p.channel, "channel-token")
	for _, s := range []*broker.Service{one, other} {
		_, err := p.broadcast(s)
		require.NoError(t, err)
	}
	p.put(t, one, p.channel, "another-token")
	_, err := p.broadcast(one)
	require.ErrorIs(t, err, broker.ErrForbidden, "the node that replaced it knows at once")
	_, err = p.broadcast(other)
	require.NoError(t, err, "the other node has it in its cache")
	p.now = p.now.Add(5 * time.Second)
	_, err = p.broadcast(other)
	require.ErrorIs(t, err, broker.ErrForbidden)
}

func TestANewToken_IsAcceptedEverywhereWithinASecond(t *testing.T) {
	p := newParties(t)
	one, other := p.newNode(), p.newNode()
	p.put(t, one, p.producer, "producer-token")
	p.put(t, one, p.channel, "another-token")
	_, err := p.broadcast(other)
	require.ErrorIs(t, err, broker.ErrForbidden)
	p.put(t, one, p.channel, "channel-token")
	p.now = p.now.Add(time.Second)
	_, err = p.broadcast(other)
	require.NoError(t, err)
}

func TestAConsumer_HasJobsForMessagesAcceptedAfterItsPut(t *testing.T) {
	p := newParties(t)
	s := p.newNode()
	p.put(t, s, p.producer, "producer-token")
	p.put(t, s, p.channel, "channel-token")
	before, err := p.broadcast(s)
	require.NoError(t, err)
	require.True(t, p.put(t, s, p.consumer, "consumer-token"))
	after, err := p.broadcast(s)
	require.NoError(t, err)
	require.False(t, p.put(t, s, p.consumer, "another-token"), "a consumer that is put again keeps its place")
	for id, want := range map[string]int{before: 0, after: 1} {
		m, err := s.Message(t.Context(), adminCredentials, p.channel, id, nil)
		require.NoError(t, err)
		require.Len(t, m.Jobs, want)
	}
}

// crashingCursors simulates a crash of the node just before a cursor is created.
type crashingCursors struct {
	repository.Cursors
	ends bool
}

func (c *crashingCursors) Create(ctx context.Context, id domain.CursorID, s domain.Standing) error {
	if c.ends {
		return domain.Errorf(domain.Unavailable, "the node has ended")
	}
	return c.Cursors.Create(ctx, id, s)
}

func TestARepeatedPut_CreatesAMissingCursorAtTheSamePosition(t *testing.T) {
	p := newParties(t)
	cursors := &crashingCursors{Cursors: p.ports.Cursors, ends: true}
	p.ports.Cursors = cursors
	s := p.newNode()
	p.put(t, s, p.producer, "producer-token")
	p.put(t, s, p.channel, "channel-token")
	token := "consumer-token"
	draft := broker.Draft{Token: &token, CallbackURL: "https://billing.example/"}
	_, _, err := s.PutParty(t.Context(), adminCredentials, p.consumer, draft, broker.Condition{})
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	id, err := p.broadcast(s)
	require.NoError(t, err)
	cursors.ends = false
	require.False(t, p.put(t, s, p.consumer, token))
	standing, err := cursors.Standing(t.Context(), p.consumer.Cursor())
	require.NoError(t, err)
	require.Zero(t, standing.Position(0).Number, "before the message that came between")
	m, err := s.Message(t.Context(), adminCredentials, p.channel, id, nil)
	require.NoError(t, err)
	require.Len(t, m.Jobs, 1)
}

func TestATokenOfAParty_IsStoredAsADigestOrSealed(t *testing.T) {
	p := newParties(t)
	s := p.newNode()
	for _, id := range []domain.PartyID{p.producer, p.channel} {
		p.put(t, s, id, "secret")
		stored, err := p.ports.Parties.Party(t.Context(), id)
		require.NoError(t, err)
		require.Empty(t, stored.Token)
		require.NotZero(t, stored.TokenSum)
	}
	p.put(t, s, p.consumer, "secret")
	stored, err := p.ports.Parties.Party(t.Context(), p.consumer)
	require.NoError(t, err)
	require.Zero(t, stored.TokenSum)
	require.NotEmpty(t, stored.Token)
}
