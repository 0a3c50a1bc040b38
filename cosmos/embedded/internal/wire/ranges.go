package wire

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// serveRanges returns the physical partitions of a container. If the request has the etag of an earlier response, it
// returns only newer partitions, with the ids of their parents.
func (s *Server) serveRanges(r *serverRequest) (Response, error) {
	if r.Method != http.MethodGet {
		return Response{}, methodError(r)
	}
	c, err := s.engine.Container(r.segments[1], r.segments[3])
	if err != nil {
		return Response{}, err
	}
	newest := c.RangesVersion()
	known, err := strconv.ParseUint(strings.Trim(r.Header.Get("If-None-Match"), `"`), 10, 64)
	if err != nil {
		known = 0 // without a known etag, return all partitions
	}
	r.answer.Set("x-ms-request-charge", "1")
	r.answer["Etag"] = []string{strconv.Quote(strconv.FormatUint(newest, 10))}
	if known >= newest {
		return Response{Status: http.StatusNotModified}, nil
	}
	list := []map[string]any{}
	for _, p := range c.Ranges() {
		if p.Version <= known {
			continue
		}
		list = append(list, map[string]any{
			"_rid": c.RID, "id": p.ID, "_etag": strconv.Quote(strconv.FormatUint(p.Version, 10)), "minInclusive": p.Min, "maxExclusive": p.Max,
			"ridPrefix": 0, "_self": "", "throughputFraction": 1 / float64(len(c.Ranges())), "status": "online",
			"parents": append([]string{}, p.Parents...), "ownedArchivalPKRangeIds": []string{}, "_ts": 0, "lsn": p.Version,
		})
	}
	body, err := json.Marshal(map[string]any{"_rid": c.RID, "PartitionKeyRanges": list, "_count": len(list)})
	return Response{Status: http.StatusOK, Body: body}, err
}
