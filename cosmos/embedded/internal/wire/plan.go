package wire

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
)

// plan answers the question with which most clients begin a query: where to
// send it, and what to do with the results of several partitions. The engine
// gives plans without any such work only: for queries within one logical
// partition, and for filters and projections over many.
func (s *Server) plan(r *request, c *engine.Container) (Response, error) {
	q, text, err := s.parseQuery(r)
	if err != nil {
		return Response{}, err
	}
	statement, err := statementOf(text)
	if err != nil {
		return Response{}, err
	}
	pk, prefix, at, err := where(r, c)
	if err != nil {
		return Response{}, err
	}
	ranges, err := c.Reach(engine.QueryRequest{Query: q, Text: string(text), Partition: pk, Scoped: pk != "", Prefix: prefix, Range: at})
	if err != nil {
		return Response{}, err
	}
	var list []map[string]any
	for _, reach := range ranges {
		list = append(list, map[string]any{"min": reach.Min, "max": reach.Max, "isMinInclusive": true, "isMaxInclusive": reach.Min == reach.Max})
	}
	body, err := json.Marshal(map[string]any{
		"partitionedQueryExecutionInfoVersion": 2,
		"queryInfo": map[string]any{
			"distinctType": "None", "top": nil, "offset": nil, "limit": nil,
			"orderBy": []string{}, "orderByExpressions": []string{}, "groupByExpressions": []string{}, "groupByAliases": []string{},
			"aggregates": []string{}, "groupByAliasToAggregateType": map[string]string{},
			"rewrittenQuery": "", "hasSelectValue": selectsValue(statement), "hasNonStreamingOrderBy": false,
		},
		"queryRanges": list,
	})
	if err != nil {
		return Response{}, err
	}
	return metadata(r, http.StatusOK, body)
}

func statementOf(body []byte) (string, error) {
	var p struct {
		Query string `json:"query"`
	}
	err := json.Unmarshal(body, &p)
	return p.Query, err
}

// selectsValue reports whether the results are bare values.
func selectsValue(text string) bool {
	words := strings.Fields(strings.ToUpper(text))
	for i, word := range words {
		switch {
		case word == "VALUE":
			return true
		case i > 0 && word != "DISTINCT" && word != "TOP" && words[i-1] != "TOP":
			return false
		}
	}
	return false
}
