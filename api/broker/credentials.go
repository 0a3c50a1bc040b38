package broker

import (
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/domain/broker"
)

// Headers that contain the credentials of a request.
const (
	AdminTokenHeader    = "X-Broker-Admin-Token" //nolint:gosec // a name
	ChannelTokenHeader  = "X-Broker-Channel-Token"
	ProducerIDHeader    = "X-Broker-Producer-Id"
	ProducerTokenHeader = "X-Broker-Producer-Token"
	ConsumerTokenHeader = "X-Broker-Consumer-Token"
)

// credentials returns the credentials of a request. It fails with [broker.ErrForbidden] if the
// request contains a wrong operator token.
func (e *edge) credentials(w http.ResponseWriter, r *http.Request) (*broker.Credentials, error) {
	creds := &broker.Credentials{
		ChannelToken: r.Header.Get(ChannelTokenHeader),
		ProducerID:   r.Header.Get(ProducerIDHeader), ProducerToken: r.Header.Get(ProducerTokenHeader),
		ConsumerToken: r.Header.Get(ConsumerTokenHeader),
	}
	token := r.Header.Get(AdminTokenHeader)
	if token == "" {
		scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if strings.EqualFold(scheme, "Bearer") {
			token = bearer
		}
	}
	if token == "" {
		return creds, nil
	}
	var err error
	if creds.IsAdmin, err = e.host.IsOperator(w, r, token); err == nil && !creds.IsAdmin {
		err = broker.ErrForbidden
	}
	return creds, err
}
