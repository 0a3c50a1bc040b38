package wire

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

type autoscale struct {
	Max int `json:"maxThroughput"`
}

// parseThroughput parses the throughput in the headers of a create request.
func parseThroughput(r *serverRequest) (t engine.Throughput, err error) {
	if text := r.Header.Get("x-ms-offer-throughput"); text != "" {
		if t.Manual, err = strconv.Atoi(text); err != nil || t.Manual <= 0 {
			return t, badRequest("throughput %q: want a multiple of 100 from 400 on", text)
		}
	}
	if text := r.Header.Get("x-ms-cosmos-offer-autopilot-settings"); text != "" {
		var p autoscale
		if json.Unmarshal([]byte(text), &p) != nil || p.Max <= 0 {
			return t, badRequest("autoscale throughput %s: want a multiple of 1000 from 1000 on", text)
		}
		t.Autoscale = p.Max
	}
	return t, t.Check()
}

func (s *Server) serveOffers(r *serverRequest) (Response, error) {
	if r.Method != http.MethodGet && (r.Method != http.MethodPost || !r.isQuery()) {
		return Response{}, methodError(r)
	}
	var all [][]byte
	for _, offer := range s.engine.Offers() {
		doc, err := rawjson.Compact(nil, offer.JSON())
		if err != nil {
			return Response{}, err
		}
		all = append(all, doc)
	}
	return s.listMetadata(r, "Offers", "", all)
}

func (s *Server) serveOffer(r *serverRequest) (Response, error) {
	id := r.segments[1]
	offer, err := s.engine.Offer(id)
	if err != nil {
		return Response{}, err
	}
	switch r.Method {
	case http.MethodGet:
	case http.MethodPut:
		t, err := parseOffer(r, offer)
		if err != nil {
			return Response{}, err
		}
		if offer, err = s.engine.ReplaceOffer(r.Context(), id, r.Header.Get("If-Match"), t); err != nil {
			return Response{}, err
		}
	default:
		return Response{}, methodError(r)
	}
	r.answer.Set("x-ms-offer-replace-pending", "false") // always false, because the engine splits ranges synchronously
	r.answer.Set("x-ms-cosmos-min-throughput", strconv.Itoa(offer.MinThroughput()))
	return metadataResponse(r, http.StatusOK, offer.JSON())
}

// parseOffer parses the new throughput in a request to replace an offer.
func parseOffer(r *serverRequest, offer engine.Provisioned) (engine.Throughput, error) {
	switch toAutoscale := r.isSet("x-ms-cosmos-migrate-offer-to-autopilot"); {
	case toAutoscale, r.isSet("x-ms-cosmos-migrate-offer-to-manual-throughput"):
		return offer.Migrated(toAutoscale) // for a migration, the body contains no new throughput
	}
	body, err := r.readBody()
	if err != nil {
		return engine.Throughput{}, err
	}
	var p struct {
		Content struct {
			Manual    int        `json:"offerThroughput"`
			Autoscale *autoscale `json:"offerAutopilotSettings"`
		} `json:"content"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return engine.Throughput{}, badRequest("offer: %v", err)
	}
	if p.Content.Autoscale != nil {
		// The manual throughput in the body is the current one, not a new one.
		return engine.Throughput{Autoscale: p.Content.Autoscale.Max}, nil
	}
	return engine.Throughput{Manual: p.Content.Manual}, nil
}
