package node

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// A brokerSetup stores the parties of the configuration: producers, channels
// and consumers.
//
// A party that is already stored as configured is not changed. Therefore any
// number of nodes may run the setup concurrently and at every start, and a node
// that crashes during the setup does not block other nodes. If the
// configurations of two nodes differ, the node that starts last wins. The setup
// deletes no parties.
//
// A party that cannot be stored does not stop the node. If the store cannot be
// reached, or the host of a callback URL cannot be resolved, the node retries
// until it succeeds or stops. Permanent faults, such as a missing token or a
// forbidden URL, are logged once as errors, and /readyz warns about them.
type brokerSetup struct {
	put      func(ctx context.Context, id domain.PartyID, d broker.Draft) (created bool, err error)
	logger   *slog.Logger
	fraction func() float64 // returns a random number in [0, 1)

	mu       sync.Mutex
	pending  config.BrokerParties // parties that are not stored yet; channels precede consumers
	reported map[domain.PartyID]bool
	refused  int
}

// Limits of a brokerSetup.
const (
	partiesAtOnce    = 8
	setupTimeout     = 15 * time.Second // time limit of the first attempts, for which Open waits
	minSetupPause    = time.Second
	maxSetupPause    = 30 * time.Second
	conflictAttempts = 4 // attempts to store a party that other nodes are changing
)

func newBrokerSetup(cfg *config.Config, service *broker.Service, opts *Options) *brokerSetup {
	s := &brokerSetup{
		logger: opts.Logger, fraction: opts.randomFraction,
		pending: cfg.Broker.Parties(), reported: make(map[domain.PartyID]bool),
	}
	operator := &broker.Credentials{IsAdmin: true}
	s.put = func(ctx context.Context, id domain.PartyID, d broker.Draft) (bool, error) {
		_, created, err := service.PutParty(ctx, operator, id, d, broker.Condition{})
		return created, err
	}
	if service == nil && len(s.pending) > 0 {
		s.logger.Error("cannot store the producers, channels and consumers from the configuration: the node has no broker", "parties", len(s.pending))
		s.refused, s.pending = len(s.pending), nil
	}
	return s
}

// storeAllOnce tries once to store each party. The node calls it before it
// serves requests.
func (s *brokerSetup) storeAllOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	s.storePending(ctx)
}

// retryPending retries until all parties are stored or rejected, or ctx ends.
func (s *brokerSetup) retryPending(ctx context.Context) {
	for pause := minSetupPause; s.countPending() > 0; pause = min(2*pause, maxSetupPause) {
		wait := time.Duration((0.5 + s.fraction()/2) * float64(pause))
		if clock.Sleep(ctx, wait) != nil {
			return
		}
		s.storePending(ctx)
	}
}

func (s *brokerSetup) countPending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending)
}

// storePending tries to store each pending party. It stores consumers last,
// because a consumer's channel must exist.
func (s *brokerSetup) storePending(ctx context.Context) {
	s.mu.Lock()
	all := s.pending
	s.mu.Unlock()
	first := slices.IndexFunc(all, func(p config.BrokerParty) bool { return p.ID.IsConsumer() })
	if first < 0 {
		first = len(all)
	}
	for _, parties := range []config.BrokerParties{all[:first], all[first:]} {
		var storing errgroup.Group
		storing.SetLimit(partiesAtOnce)
		for _, p := range parties {
			storing.Go(func() error {
				s.storeParty(ctx, p)
				return nil
			})
		}
		_ = storing.Wait() // storeParty logs errors and returns none
	}
}

// storeParty tries to store a party. Unless the error may be temporary, it
// removes the party from pending.
func (s *brokerSetup) storeParty(ctx context.Context, p config.BrokerParty) {
	created, err := s.putParty(ctx, &p)
	name := p.ID.Describe()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		if created {
			s.logger.InfoContext(ctx, "created a producer, channel or consumer from the configuration", "party", name)
		}
	case s.isTemporary(p.ID, err):
		if !s.reported[p.ID] {
			s.reported[p.ID] = true
			s.logger.WarnContext(ctx, "cannot store a producer, channel or consumer from the configuration yet; the node tries again", "party", name, "error", err)
		}
		return
	default:
		s.refused++
		s.logger.ErrorContext(ctx, "cannot store a producer, channel or consumer from the configuration; correct it, and restart the node or run messagehub broker sync", "party", name, "error", err)
	}
	s.pending = slices.DeleteFunc(slices.Clone(s.pending), func(x config.BrokerParty) bool { return x.ID == p.ID })
}

// putParty stores a party. It retries after a conflict with another node that
// changed the party. If the other node stored the same configuration, the retry
// changes nothing.
func (s *brokerSetup) putParty(ctx context.Context, p *config.BrokerParty) (created bool, err error) {
	draft := broker.Draft{Label: p.Name, CallbackURL: p.CallbackURL}
	token, hasToken, err := p.Token.Read()
	if err != nil {
		return false, domain.Errorf(domain.Invalid, "%w", err)
	}
	if hasToken {
		text := token.Reveal()
		draft.Token = &text
	}
	for range conflictAttempts {
		if created, err = s.put(ctx, p.ID, draft); domain.KindOf(err) != domain.Conflict {
			break
		}
	}
	return created, err
}

// isTemporary reports whether a retry may succeed. The caller must hold s.mu.
func (s *brokerSetup) isTemporary(id domain.PartyID, err error) bool {
	switch domain.KindOf(err) {
	case domain.Invalid, domain.Damaged, domain.NewerFormat:
		return false
	case domain.NotFound: // a retry can succeed only if the consumer's channel is still pending
		return id.IsConsumer() && slices.ContainsFunc(s.pending, func(x config.BrokerParty) bool { return x.ID == id.Channel() })
	default:
		return true
	}
}

// warnings returns the warnings of /readyz about parties that are not stored.
// They do not name the parties, because anyone may call /readyz; the log does.
func (s *brokerSetup) warnings() []api.FailedCheck {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 && s.refused == 0 {
		return nil
	}
	return []api.FailedCheck{{
		Name:   "broker-configuration",
		Reason: fmt.Sprintf("of the producers, channels and consumers in the configuration, %d cannot be stored, and %d are not stored yet", s.refused, len(s.pending)),
		Remedy: "read the log of this node, which names them",
	}}
}
