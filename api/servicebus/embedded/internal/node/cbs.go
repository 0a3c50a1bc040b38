package node

import (
	"errors"
	"fmt"
	"strings"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp/server"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/sas"
)

// attachTokens accepts a link to or from $cbs. A connection can have one link in each direction.
func (p *peer) attachTokens(l *server.Link) {
	direction := 0
	if l.PeerSends() {
		direction = 1
	}
	p.mu.Lock()
	taken := p.cbsLinks[direction] > 0
	if !taken {
		p.cbsLinks[direction]++
	}
	p.mu.Unlock()
	if taken {
		l.Refuse(amqp.Errorf(amqp.NotAllowed, "the connection has a link to $cbs already; close that one first"))
		return
	}
	l.WhenGone(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.cbsLinks[direction]--
	})
	if !l.PeerSends() {
		p.attachReplies(l, cbs)
		return
	}
	l.Receive(server.Terms{Credit: requestCredit, MaxMessageSize: 64 << 10}, &requestLink{
		peer: p, node: cbs, handle: p.putToken,
		names: [3]string{"status-code", "status-description", "error-condition"},
	})
}

// putToken verifies a token, and stores its Claim.
func (p *peer) putToken(r clientRequest, done func(requestReply)) {
	token, _ := r.value.(string)
	audience, _ := r.properties.Get("name").(string)
	if r.operation != "put-token" || token == "" || audience == "" {
		done(requestReply{status: 400, description: "want the operation put-token, the name of an entity, and a token"})
		return
	}
	if len(audience) > maxAddress {
		done(requestReply{status: 400, description: fmt.Sprintf("a name of %d bytes; the longest is %d", len(audience), maxAddress), condition: argumentError})
		return
	}
	claim, err := p.checkToken(token)
	if err != nil {
		done(requestReply{status: 401, description: err.Error(), condition: amqp.UnauthorizedAccess})
		return
	}
	p.conn.Authorize()
	path := addressOf(audience)
	if !p.namespace.Create && path != "" {
		if _, err := p.namespace.Bus.Entity(entityOf(path)); errors.Is(err, bus.ErrNotFound) {
			done(requestReply{status: 404, description: notFound(path).Description, condition: amqp.NotFound})
			return
		}
	}
	p.mu.Lock()
	const maxTokens = 10_000 // maxTokens is the maximum number of tokens of a connection
	full := len(p.claims) >= maxTokens
	if !full {
		p.claims[sas.Path(audience)] = claim
	}
	p.mu.Unlock()
	if full {
		done(requestReply{status: 403, description: "too many tokens on one connection", condition: amqp.ResourceLimitExceeded})
		return
	}
	done(requestReply{status: 202, description: "Accepted"})
}

func (p *peer) checkToken(token string) (sas.Claim, error) {
	n := p.namespace
	if n.Open || n.TrustTokens && !strings.HasPrefix(token, "SharedAccessSignature ") {
		return sas.Claim{Rights: sas.All}, nil
	}
	return n.Keys.Check(token, n.Clock.Now())
}
