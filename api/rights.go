package api

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/api/identity"
)

// rights maps each route to roles, for hubs with an issuer. A request requires one of the roles of
// its route. An empty row allows every sender: the routes of the broker verify their tokens
// themselves, and probes need no token. A route without a row is refused. The row for GET also
// applies to HEAD. The OpenAPI document contains the same table, as the security of each operation.
var rights = map[string][]identity.Role{
	"POST /v1/data-available": {identity.RoleDomain},
	"POST /v1/events":         {identity.RoleActor, identity.RoleDomain},

	"GET /v1/peek":                  {identity.RoleActor},
	"GET /v1/peek/{group}":          {identity.RoleActor},
	"GET /v1/bundles/{bundleId}":    {identity.RoleActor},
	"DELETE /v1/dequeue/{bundleId}": {identity.RoleActor},
	"GET /v1/queues":                {identity.RoleActor},

	"GET /api/peek":              {identity.RoleActor},
	"GET /api/peek/timeseries":   {identity.RoleActor},
	"GET /api/peek/masterdata":   {identity.RoleActor},
	"GET /api/peek/aggregations": {identity.RoleActor},
	"DELETE /api/dequeue":        {identity.RoleActor},

	"GET /v1/subscriptions":                                        {identity.RoleActor},
	"POST /v1/subscriptions":                                       {identity.RoleActor},
	"PUT /v1/subscriptions":                                        {identity.RoleActor},
	"GET /v1/subscriptions/{subscriptionId}":                       {identity.RoleActor},
	"PUT /v1/subscriptions/{subscriptionId}":                       {identity.RoleActor},
	"DELETE /v1/subscriptions/{subscriptionId}":                    {identity.RoleActor},
	"POST /v1/subscriptions/{subscriptionId}/pause":                {identity.RoleActor},
	"POST /v1/subscriptions/{subscriptionId}/resume":               {identity.RoleActor},
	"POST /v1/subscriptions/{subscriptionId}/test":                 {identity.RoleActor},
	"POST /v1/subscriptions/{subscriptionId}/rotate":               {identity.RoleActor},
	"POST /v1/subscriptions/{subscriptionId}/replays":              {identity.RoleActor},
	"GET /v1/subscriptions/{subscriptionId}/replays/{replayId}":    {identity.RoleActor},
	"DELETE /v1/subscriptions/{subscriptionId}/replays/{replayId}": {identity.RoleActor},
	"POST /v1/deliveries/{deliveryId}/replay":                      {identity.RoleActor},
	"GET /v1/deliveries":                                           {identity.RoleActor, identity.RoleOperatorRead},
	"GET /v1/deliveries/{deliveryId}":                              {identity.RoleActor, identity.RoleOperatorRead},
	"GET /v1/deliveries/{deliveryId}/explain":                      {identity.RoleActor, identity.RoleOperatorRead},

	"GET " + watchesPath:                         {identity.RoleActor},
	"POST " + watchesPath:                        {identity.RoleActor},
	"GET " + watchesPath + "/{watchId}":          {identity.RoleActor},
	"GET " + watchesPath + "/{watchId}/attempts": {identity.RoleActor},
	"PUT " + watchesPath + "/{watchId}":          {identity.RoleActor},
	"DELETE " + watchesPath + "/{watchId}":       {identity.RoleActor},
	"GET /v1/resources/{name}":                   {identity.RoleActor},
	"PUT /v1/resources/{name}":                   {identity.RoleActor},
	"DELETE /v1/resources/{name}":                {identity.RoleActor},

	"POST " + objectEventsPath:                   {identity.RoleOperator},
	"OPTIONS " + objectEventsPath:                {},
	"GET " + objectsPath:                         {identity.RoleOperatorRead},
	"GET " + objectsPath + "/count":              {identity.RoleOperatorRead},
	"GET " + objectsPath + "/{objectId}":         {identity.RoleOperatorRead},
	"GET " + objectsPath + "/{objectId}/history": {identity.RoleOperatorRead},
	"PATCH " + objectsPath + "/{objectId}":       {identity.RoleOperator},
	"GET " + objectsPath + "/{objectId}/link":    {identity.RoleOperator},

	"GET " + crawlsPath:                      {identity.RoleOperatorRead},
	"POST " + crawlsPath:                     {identity.RoleOperator},
	"GET " + crawlsPath + "/{jobId}":         {identity.RoleOperatorRead},
	"DELETE " + crawlsPath + "/{jobId}":      {identity.RoleOperator},
	"GET " + inventoriesPath:                 {identity.RoleOperatorRead},
	"POST " + inventoriesPath:                {identity.RoleOperator},
	"GET " + inventoriesPath + "/{jobId}":    {identity.RoleOperatorRead},
	"DELETE " + inventoriesPath + "/{jobId}": {identity.RoleOperator},
	"GET " + patchesPath:                     {identity.RoleOperatorRead},
	"POST " + patchesPath:                    {identity.RoleOperator},
	"GET " + patchesPath + "/{jobId}":        {identity.RoleOperatorRead},
	"DELETE " + patchesPath + "/{jobId}":     {identity.RoleOperator},

	"POST /v1/admin/check":                  {identity.RoleOperator}, // a check can also repair data
	"GET /v1/admin/backup":                  {identity.RoleOperator}, // the archive contains all secrets of the data folder
	"GET " + logLevelPath:                   {identity.RoleOperatorRead},
	"PUT " + logLevelPath:                   {identity.RoleOperator},
	"GET /v1/admin/queues":                  {identity.RoleOperatorRead},
	"GET " + findPath:                       {identity.RoleOperatorRead},
	"GET /v1/admin/queues/{actor}":          {identity.RoleOperatorRead},
	"GET /v1/admin/queues/{actor}/records":  {identity.RoleOperatorRead},
	"POST /v1/admin/queues/{actor}/release": {identity.RoleOperator},
	"POST /v1/admin/queues/{actor}/skip":    {identity.RoleOperator},
	"POST /v1/admin/queues/{actor}/replay":  {identity.RoleOperator},
	"POST /v1/admin/queues/{actor}/abandon": {identity.RoleOperator},
	"POST /v1/admin/queues/{actor}/freeze":  {identity.RoleOperator},
	"POST /v1/admin/queues/{actor}/thaw":    {identity.RoleOperator},

	"GET " + deadLettersPath:                                       {identity.RoleOperatorRead},
	"DELETE " + deadLettersPath + "/{queue}":                       {identity.RoleOperator},
	"POST " + deadLettersPath + "/{queue}/resend":                  {identity.RoleOperator},
	"GET " + deadLettersPath + "/{queue}/records":                  {identity.RoleOperatorRead},
	"GET " + deadLettersPath + "/{queue}/{sequenceNumber}":         {identity.RoleOperator}, // the response contains the body of the message
	"DELETE " + deadLettersPath + "/{queue}/{sequenceNumber}":      {identity.RoleOperator},
	"POST " + deadLettersPath + "/{queue}/{sequenceNumber}/resend": {identity.RoleOperator},

	"GET " + profilesPath: {identity.RoleOperator}, // profiles reveal the memory and the work of the process

	"GET /metrics": {identity.RoleMetrics, identity.RoleOperatorRead},

	"GET /healthz":           {},
	"GET /readyz":            {},
	"GET /api/monitor/live":  {},
	"GET /api/monitor/ready": {},
	"GET /openapi.json":      {},
	"GET /openapi.yaml":      {},

	"GET " + docsRoot:            {}, // the pages contain no user data
	"GET " + docsPath + "{page}": {},
}

// rightsOf returns the row of a route, and whether there is one.
func rightsOf(method, route string) (roles []identity.Role, hasRow bool) {
	if strings.HasPrefix(route, brokerPrefix) || route == "/" || strings.HasPrefix(route, consolePath) {
		return nil, true // the packages of these routes identify the sender
	}
	if method == http.MethodHead {
		method = http.MethodGet
	}
	roles, hasRow = rights[method+" "+route]
	return roles, hasRow
}

const brokerPrefix = "/broker/"

type principalKey struct{}

// principalOf returns the sender of a request. It returns nil if the hub has no issuer, or if the
// route allows every sender.
func principalOf(ctx context.Context) *identity.Principal {
	p, _ := ctx.Value(principalKey{}).(*identity.Principal)
	return p
}

// authorize refuses requests whose sender has none of the roles that the route requires. If the hub
// has no issuer, it refuses nothing, and the routes require the header X-Actor-Id or an operator
// token.
func (s *Server) authorize(next http.Handler) http.Handler {
	if s.opts.Identity == nil {
		return next
	}
	serve := func(w http.ResponseWriter, r *http.Request) error {
		roles, hasRow := rightsOf(r.Method, routeOf(r))
		if hasRow && len(roles) == 0 {
			if err := s.limitRequest(w, r); err != nil {
				return err
			}
			next.ServeHTTP(w, r)
			return nil
		}
		p, err := s.findPrincipal(w, r, roles)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(roles, p.Has) {
			s.metrics.badTokens.WithLabelValues(roleMissing).Inc()
			return missingRole(w, roles)
		}
		r = r.WithContext(context.WithValue(r.Context(), principalKey{}, p))
		if err := s.limitRequest(w, r); err != nil {
			return err
		}
		next.ServeHTTP(w, r)
		return nil
	}
	plain, legacy := s.handle(serve), s.original(serve)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(routeOf(r), "/api/") {
			legacy(w, r)
			return
		}
		plain(w, r)
	})
}

// findPrincipal returns the sender of a request to a route that requires one of roles. If an
// operator may use the route, it also accepts the operator tokens from the hub's configuration.
func (s *Server) findPrincipal(w http.ResponseWriter, r *http.Request, roles []identity.Role) (*identity.Principal, error) {
	isForOperators := slices.Contains(roles, identity.RoleOperator) || slices.Contains(roles, identity.RoleOperatorRead)
	if raw, err := identity.Bearer(r); err == nil && raw != "" && isForOperators && !identity.IsSigned(raw) {
		isRight, err := s.isOperator(w, r, raw)
		switch {
		case err != nil:
			return nil, err
		case !isRight:
			return nil, missingOperator(w)
		}
		return identity.NewOperator(s.operatorName(raw)), nil
	}
	return s.authenticate(w, r)
}

// authenticate returns the sender of a request. After many invalid tokens from an address, it
// verifies no new token from this address for a while, because verification takes time. It still
// accepts tokens that were verified before.
func (s *Server) authenticate(w http.ResponseWriter, r *http.Request) (*identity.Principal, error) {
	address, now := "address "+s.addressOf(r), s.opts.Clock()
	if pause := s.badTokens.pause(address, now); pause > 0 && !s.opts.Identity.Remembers(r) {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(pause.Seconds()))))
		s.metrics.badTokens.WithLabelValues(tooManyTokens).Inc()
		return nil, refuse(tooManyRequests, "There were too many invalid tokens from this address. Repeat the request after the pause, with a valid token.")
	}
	p, err := s.opts.Identity.Authenticate(r)
	if e, ok := errors.AsType[*identity.Error](err); ok && e.Kind == identity.Invalid {
		s.badTokens.take(address, 1, now)
	}
	if err != nil {
		return nil, s.refuseSender(w, err)
	}
	recordOf(r.Context()).setPrincipal(p)
	return p, nil
}

// Values of the metrics label reason, for refused tokens. The first values have the same order as
// the kinds of identity.Error.
var tokenRefusals = []string{"missing", "ambiguous", "invalid", "issuer-unavailable", roleMissing, tooManyTokens}

const (
	roleMissing   = "missing-role"
	tooManyTokens = "too-many"
)

// refuseSender counts a request whose sender is unknown, and returns the error for the response.
func (s *Server) refuseSender(w http.ResponseWriter, err error) error {
	e, ok := errors.AsType[*identity.Error](err)
	if !ok {
		return err // the client has disconnected
	}
	s.metrics.badTokens.WithLabelValues(tokenRefusals[e.Kind]).Inc()
	challenge := "Bearer"
	switch e.Kind {
	case identity.Missing: // RFC 6750: if a request contains no token, the response has no error code
	case identity.Unavailable:
		return &problemError{problem: issuerUnavailable, cause: err}
	case identity.Ambiguous:
		challenge += ` error="invalid_request", error_description="` + e.Description + `"`
	case identity.Invalid:
		challenge += ` error="invalid_token", error_description="` + e.Description + `"`
	}
	w.Header().Set("WWW-Authenticate", challenge)
	return &problemError{problem: invalidToken, detail: e.Description}
}

// missingRole returns the error for a request whose sender has none of the roles that the route
// requires.
func missingRole(w http.ResponseWriter, roles []identity.Role) error {
	names := make([]string, len(roles))
	for i, role := range roles {
		if names[i] = string(role); role == identity.RoleDomain {
			names[i] = "domain:NAME"
		}
	}
	if len(names) == 0 {
		return &problemError{problem: missingRight, detail: "This route is not open to tokens."}
	}
	w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+strings.Join(names, " ")+`"`)
	return refuse(missingRight, "The token lacks the role %s. Have the issuer of the token grant it, and get a new token.", strings.Join(names, " or "))
}

// hasOperatorRole reports whether the token of a request to the broker has an operator role: for
// reading or, if the request changes something, for giving orders.
func (s *Server) hasOperatorRole(w http.ResponseWriter, r *http.Request, token string) (bool, error) {
	shown := r.Clone(r.Context())
	shown.Header.Set("Authorization", "Bearer "+token)
	p, err := s.authenticate(w, shown)
	if err != nil {
		return false, err
	}
	role := identity.RoleOperator
	if r.Method == http.MethodGet && !strings.HasSuffix(routeOf(r), "/peek") { // a peek is a change, because the hub no longer delivers the messages by a call
		role = identity.RoleOperatorRead
	}
	return p.Has(role), nil
}
