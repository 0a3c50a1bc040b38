package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// tokenLimit is the maximum time for which a node may accept a replaced token.
const tokenLimit = 5 * time.Second

// A tokenRotation is a producer that broadcasts while its token is replaced.
type tokenRotation struct {
	brokerProducer
	manager brokerManager
	id      domain.PartyID
}

func (sim *brokerSimulation) newTokenRotation() (*tokenRotation, error) {
	id, err := domain.Producers.Parse("rotated")
	r := &tokenRotation{
		brokerProducer: brokerProducer{baseClient: sim.newClient("rotation", brokerPurpose(1900, 0)), sim: sim},
		manager:        brokerManager{baseClient: sim.newClient("rotation", brokerPurpose(1900, 1)), sim: sim}, id: id,
	}
	return r, err
}

func (r *tokenRotation) tokenNumber(n int) *string {
	return new(fmt.Sprintf("token-%d-of-%s", n, r.id))
}

// rotateToken replaces the token several times. After each replacement it broadcasts with the current token and with
// the previous token. Nodes must refuse the previous token after tokenLimit. If reads may be stale, there is no limit.
func (r *tokenRotation) rotateToken() error {
	for n := range 2 + r.rng.IntN(3) {
		if err := r.manager.putParty(r.id, broker.Draft{Token: r.tokenNumber(n)}); err != nil || r.sim.ctx.Err() != nil {
			return err
		}
		if !r.pause(tokenLimit + time.Millisecond) {
			return nil
		}
		for range 2 + r.rng.IntN(4) {
			if n > 0 {
				if err := r.broadcastWith(r.tokenNumber(n-1), false); err != nil {
					return err
				}
			}
			if err := r.broadcastWith(r.tokenNumber(n), true); err != nil {
				return err
			}
			if !r.pause(time.Duration(r.rng.IntN(3000)) * time.Millisecond) {
				return nil
			}
		}
	}
	return nil
}

// broadcastWith broadcasts once with the given token. isRight is true if the token is current.
func (r *tokenRotation) broadcastWith(token *string, isRight bool) error {
	if _, ok := r.awaitTurn("broadcasts"); !ok {
		return nil
	}
	n := r.sim.anyBroker(r.rng)
	if n == nil {
		return nil
	}
	m := r.newMessage()
	m.credentials.ProducerID, m.credentials.ProducerToken = r.id.String(), *token
	id, _, err := n.service.Broadcast(r.sim.ctx, m.credentials, m.channel.id, m.broadcast)
	isForbidden := errors.Is(err, broker.ErrForbidden)
	switch {
	case err == nil && !isRight && r.sim.plan.consistency == "Strong":
		return fmt.Errorf("P13: %s accepts a token that was replaced %v ago", n.who, tokenLimit)
	case err == nil:
		return r.sim.noteAccepted(m, id)
	case isForbidden && isRight && r.sim.plan.consistency == "Strong":
		return fmt.Errorf("P13: %s refuses a token that was stored %v ago", n.who, tokenLimit)
	case isForbidden && !isRight:
		r.sim.MarkReached("a token was refused, because it had been replaced")
	case isForbidden:
	default:
		return unexplainedError(err)
	}
	return nil
}
