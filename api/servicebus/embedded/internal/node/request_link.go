package node

import (
	"cmp"
	"sync"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp/server"
)

// maxReplies limits the replies that wait for credit on a link; maxReplyBytes limits their total size for a connection.
// Before a connection has presented a token, it has only $cbs links, for which maxAnonymousReplies suffices.
const maxReplies, maxAnonymousReplies, maxReplyBytes = 1000, 16, 4 << 20

// requestCredit is the credit of a link on which a client sends requests.
const requestCredit = 100

// A clientRequest is a message that requires a reply.
type clientRequest struct {
	operation  string
	properties amqp.Map // application properties
	value      any
	arguments  amqp.Map // value of the message, if it is a map
	id         any
	replyTo    string
}

func readRequest(payload []byte) (clientRequest, error) {
	s, err := amqp.Split(payload)
	if err != nil {
		return clientRequest{}, err
	}
	p, err := s.ReadProperties()
	if err != nil {
		return clientRequest{}, err
	}
	r := clientRequest{id: p.MessageID, replyTo: p.ReplyTo}
	if r.properties, err = s.ReadApplicationProperties(); err != nil {
		return clientRequest{}, err
	}
	r.operation, _ = r.properties.Get("operation").(string)
	bodies, err := s.ReadBodies()
	if err != nil {
		return clientRequest{}, err
	}
	if len(bodies) == 1 {
		r.value = bodies[0]
		r.arguments, _ = bodies[0].(amqp.Map)
	}
	return r, nil
}

// A requestReply is the reply to a request.
type requestReply struct {
	status      int32
	description string
	condition   amqp.Symbol
	value       any
}

// errorReply returns the reply that reports an error.
func errorReply(err error) requestReply {
	e, status := conditionOf(err)
	return requestReply{status: status, description: e.Description, condition: e.Condition}
}

// encodeReply encodes a reply. status, description and condition are property names, which differ between $cbs and
// management.
func (r requestReply) encodeReply(id any, status, description, condition string) []byte {
	var s amqp.Sections
	s.SetProperties(amqp.Properties{CorrelationID: id})
	m := amqp.Map{{Key: status, Value: r.status}, {Key: description, Value: r.description}}
	if r.condition != "" {
		m = append(m, amqp.Entry{Key: condition, Value: r.condition})
	}
	s.SetApplicationProperties(m)
	s.SetValue(r.value)
	return s.Append(nil)
}

// A requestLink receives requests and passes each to handle, which must reply exactly once.
type requestLink struct {
	peer   *peer
	node   string // node is the address to which the requests are sent
	handle func(clientRequest, func(requestReply))
	names  [3]string
}

// Delivered implements server.Receiver.
func (q *requestLink) Delivered(d *server.Delivery) {
	r, err := readRequest(d.Payload)
	if err != nil {
		d.Settle(amqp.Rejected{Error: amqp.Errorf(amqp.DecodeError, "%v", err)})
		return
	}
	q.handle(r, func(answer requestReply) {
		if q.peer.sendReply(q.node, r.replyTo, answer.encodeReply(r.id, q.names[0], q.names[1], q.names[2])) {
			d.Settle(amqp.Accepted{})
			return
		}
		d.Settle(amqp.Rejected{Error: amqp.Errorf(amqp.NotFound, "no link is attached for replies to %q, or too many replies wait on it", r.replyTo)})
	})
}

// sendReply sends a reply on one of the client's reply links. Some clients name the target of the link in replyTo, some
// name the link itself. If replyTo is empty, as with older clients, the link from node is used.
func (p *peer) sendReply(node, replyTo string, payload []byte) bool {
	replyTo = cmp.Or(replyTo, node)
	p.mu.Lock()
	to := p.replies[node+"\x00"+replyTo]
	p.mu.Unlock()
	return to != nil && to.addReply(payload)
}

// A replyLink sends replies to a client as soon as the link has credit.
type replyLink struct {
	peer    *peer
	link    *server.Link
	mu      sync.Mutex
	waiting [][]byte
	size    int // size is the number of bytes of the waiting replies
	gone    bool
}

// attachReplies accepts a link on which node sends its replies.
func (p *peer) attachReplies(l *server.Link, node string) {
	r := &replyLink{peer: p, link: l}
	names := []string{node + "\x00" + l.Name}
	if target, ok := l.Wants.Target.(*amqp.Target); ok && target != nil && target.Address != "" {
		names = append(names, node+"\x00"+target.Address)
	}
	p.mu.Lock()
	for _, name := range names {
		p.replies[name] = r
	}
	p.mu.Unlock()
	l.WhenGone(func() {
		r.discardWaiting()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, name := range names {
			if p.replies[name] == r {
				delete(p.replies, name)
			}
		}
	})
	l.Send(server.Terms{}, r)
}

func (r *replyLink) addReply(payload []byte) bool {
	limit := maxReplies
	if !r.peer.conn.Authorized() {
		limit = maxAnonymousReplies
	}
	r.mu.Lock()
	isFull := r.gone || len(r.waiting) >= limit || r.peer.replyBytes.Load() > maxReplyBytes
	if !isFull {
		r.waiting = append(r.waiting, payload)
		r.resizeWaiting(len(payload))
	}
	r.mu.Unlock()
	r.Ready(false)
	return !isFull
}

// resizeWaiting adds n, which may be negative, to the size of the waiting replies. The caller must hold r.mu.
func (r *replyLink) resizeWaiting(n int) {
	r.size += n
	r.peer.replyBytes.Add(int64(n))
}

// discardWaiting drops the waiting replies after the link has ended.
func (r *replyLink) discardWaiting() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone, r.waiting = true, nil
	r.resizeWaiting(-r.size)
}

// Ready implements server.Sender.
func (r *replyLink) Ready(drain bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.waiting) > 0 && r.link.Room() > 0 {
		if !r.link.Transfer(server.Outgoing{Tag: []byte{0}, Settled: true, Payload: r.waiting[0]}) {
			return
		}
		r.resizeWaiting(-len(r.waiting[0]))
		r.waiting = r.waiting[1:]
	}
	if drain {
		r.link.Drained()
	}
}

// Disposed implements server.Sender.
func (r *replyLink) Disposed(s *server.Sent, _ any, settled bool) {
	if !settled {
		s.Settle(amqp.Accepted{})
	}
}
