package brokerclient

import "github.com/messagehub/messagehub/api/hubclient"

// A Problem is the answer of a hub to a request that it refuses.
type Problem = hubclient.Problem //nolint:errname // problem is the word of RFC 9457

// A Fault says what is wrong at one position of a request.
type Fault = hubclient.Fault
