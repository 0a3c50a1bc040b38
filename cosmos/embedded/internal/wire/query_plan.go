package wire

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
)

// servePlan returns a query plan, which most clients request before a query. The plan tells the client to which
// partitions to send the query, and how to combine the results.
func (s *Server) servePlan(r *serverRequest, c *engine.Container) (Response, error) {
	q, text, err := s.parseQuery(r)
	if err != nil {
		return Response{}, err
	}
	pk, prefix, at, err := parseScope(r, c)
	if err != nil {
		return Response{}, err
	}
	body, needs, err := planJSON(c, engine.QueryRequest{Query: q, Text: string(text), Partition: pk, Scoped: pk != "", Prefix: prefix, Range: at})
	if err != nil {
		return Response{}, err
	}
	has := strings.Split(strings.ReplaceAll(r.Header.Get("x-ms-cosmos-supported-query-features"), " ", ""), ",")
	for _, feature := range needs {
		if !slices.Contains(has, feature) {
			return Response{}, badRequest("the query needs a client that can combine the results of several partitions, but this one does not announce that it supports %s; "+
				"scope the query to one partition key", feature)
		}
	}
	return metadataResponse(r, http.StatusOK, body)
}

// planJSON returns the plan of a query, and the features that a client needs to execute it. For a single logical
// partition, nothing must be combined.
func planJSON(c *engine.Container, request engine.QueryRequest) (body []byte, needs []string, err error) {
	ranges, alone, err := c.Reach(request)
	if err != nil {
		return nil, nil, err
	}
	plan := query.CrossPartitionPlan{Value: request.Query.SelectsValue(), Distinct: "None"}
	if !alone && request.Query.HasWindowedSource() && len(c.Ranges()) > 1 {
		return nil, nil, badRequest("TOP, OFFSET and ORDER BY of a subquery over the whole container are refused across physical partitions; " +
			"move them to the outer query, or scope the query to one partition key")
	}
	if !alone {
		if plan, err = request.Query.CrossPartition(); err != nil {
			return nil, nil, err
		}
	}
	var list []map[string]any
	for _, reach := range ranges {
		list = append(list, map[string]any{"min": reach.Min, "max": reach.Max, "isMinInclusive": true, "isMaxInclusive": reach.Min == reach.Max})
	}
	directions, aliases, sums := []string{}, []string{}, map[string]any{}
	for _, order := range plan.Orders {
		directions = append(directions, map[bool]string{false: "Ascending", true: "Descending"}[order.Descending])
	}
	for _, column := range plan.Columns {
		aliases = append(aliases, column.Name)
		sums[column.Name] = nil
		if column.Aggregate != "" {
			sums[column.Name] = column.Aggregate
		}
	}
	body, err = json.Marshal(map[string]any{
		"partitionedQueryExecutionInfoVersion": 2,
		"queryInfo": map[string]any{
			"distinctType": plan.Distinct, "top": plan.Top, "offset": plan.Offset, "limit": plan.Limit,
			"orderBy": directions, "orderByExpressions": nonNil(plan.OrderTexts),
			"groupByExpressions": nonNil(plan.GroupTexts), "groupByAliases": aliases,
			"aggregates": nonNil(plan.Aggregates), "groupByAliasToAggregateType": sums,
			"rewrittenQuery": plan.Text, "hasSelectValue": plan.Value, "hasNonStreamingOrderBy": false,
		},
		"queryRanges": list,
	})
	return body, plan.Needs(), err
}

// nonNil returns list, or an empty list for nil, because nil would become null in JSON.
func nonNil(list []string) []string { return append([]string{}, list...) }

// addAdvice adds the plan to the response that refuses a query, because some clients send a query before they request
// its plan.
func addAdvice(r *serverRequest, c *engine.Container, request engine.QueryRequest, refusal error) {
	var known *engine.Error
	if !errors.As(refusal, &known) || known.SubStatus != engine.NeedsPlan {
		return
	}
	if plan, _, err := planJSON(c, request); err == nil {
		r.advice = string(plan)
	}
}
