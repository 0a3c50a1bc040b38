package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// metadataResponse returns the response to a request that is not charged.
func metadataResponse(r *serverRequest, status int, body []byte) (Response, error) {
	r.answer.Set("x-ms-request-charge", "1")
	r.answer.Set("x-ms-session-token", "0:-1#0")
	var p struct {
		ETag string `json:"_etag"`
	}
	if len(body) > 0 && json.Unmarshal(body, &p) == nil && p.ETag != "" {
		r.answer.Set("etag", p.ETag)
		if r.Method == http.MethodGet && r.Header.Get("If-None-Match") == p.ETag {
			return Response{Status: http.StatusNotModified}, nil
		}
	}
	return Response{Status: status, Body: body}, nil
}

// regions are the names of the account's regions.
type regions struct{ write, read []string }

// listRegions returns the regions in o, or a default region if none exist.
func listRegions(o *Options) regions {
	one := []string{"South Central US"}
	r := regions{write: o.WriteRegions, read: o.ReadRegions}
	if len(r.write) == 0 {
		r.write = one
	}
	if len(r.read) == 0 {
		r.read = r.write
	}
	return r
}

// serveAccount returns the account document. It contains the host for all later requests: Advertise, or the host of
// this request.
func (s *Server) serveAccount(r *serverRequest) (Response, error) {
	if r.Method != http.MethodGet {
		return Response{}, methodError(r)
	}
	scheme, host := "http", r.Host
	if r.TLS != nil || r.URL.Scheme == "https" {
		scheme = "https"
	}
	if host == "" {
		host = r.URL.Host
	}
	if r.endpoint.Advertise != "" {
		host = r.endpoint.Advertise
	}
	locations := func(names []string) []map[string]string {
		list := make([]map[string]string, len(names))
		for i, name := range names {
			list[i] = map[string]string{"name": name, "databaseAccountEndpoint": scheme + "://" + host + "/"}
		}
		return list
	}
	body, err := json.Marshal(map[string]any{
		"id": host, "_rid": host, "_self": "", "media": "//media/", "addresses": "//addresses/", "_dbs": "//dbs/",
		"writableLocations": locations(s.regions.write), "readableLocations": locations(s.regions.read),
		"enableMultipleWriteLocations": len(s.regions.write) > 1,
		"userConsistencyPolicy":        map[string]string{"defaultConsistencyLevel": s.consistency},
	})
	if err != nil {
		return Response{}, err
	}
	return metadataResponse(r, http.StatusOK, body)
}

func (s *Server) serveDatabases(r *serverRequest) (Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodPost && r.isQuery() {
		var all [][]byte
		for _, db := range s.engine.Databases() {
			all = append(all, db.JSON)
		}
		return s.listMetadata(r, "Databases", "", all)
	}
	if r.Method != http.MethodPost {
		return Response{}, methodError(r)
	}
	body, err := r.readBody()
	if err != nil {
		return Response{}, err
	}
	t, err := parseThroughput(r)
	if err != nil {
		return Response{}, err
	}
	db, err := s.engine.CreateDatabase(r.Context(), body, t)
	if err != nil {
		return Response{}, err
	}
	return metadataResponse(r, http.StatusCreated, db.JSON)
}

func (s *Server) serveDatabase(r *serverRequest) (Response, error) {
	switch r.Method {
	case http.MethodGet:
		db, err := s.engine.Database(r.segments[1])
		if err != nil {
			return Response{}, err
		}
		return metadataResponse(r, http.StatusOK, db.JSON)
	case http.MethodDelete:
		if err := s.engine.DeleteDatabase(r.Context(), r.segments[1], r.Header.Get("If-Match")); err != nil {
			return Response{}, err
		}
		return metadataResponse(r, http.StatusNoContent, nil)
	}
	return Response{}, methodError(r)
}

func (s *Server) serveContainers(r *serverRequest) (Response, error) {
	database := r.segments[1]
	if r.Method == http.MethodGet || r.Method == http.MethodPost && r.isQuery() {
		list, err := s.engine.Containers(database)
		if err != nil {
			return Response{}, err
		}
		var all [][]byte
		for _, c := range list {
			all = append(all, c.JSON)
		}
		return s.listMetadata(r, "DocumentCollections", database, all)
	}
	if r.Method != http.MethodPost {
		return Response{}, methodError(r)
	}
	body, err := r.readBody()
	if err != nil {
		return Response{}, err
	}
	t, err := parseThroughput(r)
	if err != nil {
		return Response{}, err
	}
	c, err := s.engine.CreateContainer(r.Context(), database, body, t)
	if err != nil {
		return Response{}, err
	}
	return metadataResponse(r, http.StatusCreated, c.JSON)
}

func (s *Server) serveContainer(r *serverRequest) (Response, error) {
	database, id := r.segments[1], r.segments[3]
	switch r.Method {
	case http.MethodGet:
		c, err := s.engine.Container(database, id)
		if err != nil {
			return Response{}, err
		}
		r.answer.Set("x-ms-resource-quota", resourceQuota)
		r.answer.Set("x-ms-resource-usage", fmt.Sprintf("documentsSize=%d;collectionSize=%[1]d;", s.engine.Size(c)>>10))
		return metadataResponse(r, http.StatusOK, c.JSON)
	case http.MethodPut:
		body, err := r.readBody()
		if err != nil {
			return Response{}, err
		}
		c, err := s.engine.ReplaceContainer(r.Context(), database, id, r.Header.Get("If-Match"), body)
		if err != nil {
			return Response{}, err
		}
		return metadataResponse(r, http.StatusOK, c.JSON)
	case http.MethodDelete:
		if err := s.engine.DeleteContainer(r.Context(), database, id, r.Header.Get("If-Match")); err != nil {
			return Response{}, err
		}
		return metadataResponse(r, http.StatusNoContent, nil)
	}
	return Response{}, methodError(r)
}

// resourceQuota contains the limits of a container. Sizes are in kilobytes; -1 means no limit.
const resourceQuota = "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;"

// listMetadata returns a list of databases, containers or offers. If the request is a query, it returns the query's
// results over this list.
func (s *Server) listMetadata(r *serverRequest, name, rid string, all [][]byte) (Response, error) {
	list := []json.RawMessage{}
	if r.Method == http.MethodGet {
		for _, doc := range all {
			list = append(list, doc)
		}
	} else {
		q, _, err := s.parseQuery(r)
		if err != nil {
			return Response{}, err
		}
		if !q.Simple() || !q.Streams() {
			return Response{}, unsupportedError("a query over %s with more than a condition", name)
		}
		slots := q.NewSlots(r.Context(), query.DefaultLimits)
		for _, doc := range all {
			q.Extract(doc, slots)
			if q.Holds(slots) && q.HasResult(slots) {
				list = append(list, q.Project(nil, doc, slots))
			}
			if err := slots.Failure(); err != nil {
				return Response{}, err
			}
		}
	}
	body, err := json.Marshal(map[string]any{"_rid": rid, name: list, "_count": len(list)})
	if err != nil {
		return Response{}, err
	}
	return metadataResponse(r, http.StatusOK, body)
}

// parseQuery parses the body of a query request.
func (s *Server) parseQuery(r *serverRequest) (*query.Query, []byte, error) {
	body, err := r.readBody()
	if err != nil {
		return nil, nil, err
	}
	var p struct {
		Query      *string `json:"query"`
		Parameters []struct {
			Name  string          `json:"name"`
			Value json.RawMessage `json:"value"`
		} `json:"parameters"`
	}
	if err := json.Unmarshal(bytes.TrimSpace(body), &p); err != nil || p.Query == nil {
		return nil, nil, badRequest("the body is not {\"query\":…,\"parameters\":[…]}: %v", err)
	}
	params := map[string]query.Value{}
	for _, param := range p.Parameters {
		text, err := rawjson.Compact(nil, param.Value)
		if err != nil || len(param.Name) < 2 || param.Name[0] != '@' {
			return nil, nil, badRequest("query parameter %q is not valid", param.Name)
		}
		params[param.Name] = query.ParseValue(text)
	}
	q, err := s.engine.ParseQuery(r.Context(), *p.Query, params)
	return q, body, err
}
