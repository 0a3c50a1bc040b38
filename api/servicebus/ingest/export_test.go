package ingest

import "github.com/messagehub/messagehub/api/servicebus/internal/busclient"

// CloseTimeout is the limit for closing, for tests.
const CloseTimeout = busclient.CloseTimeout
