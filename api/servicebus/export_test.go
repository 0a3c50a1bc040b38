package servicebus

// ClosePatience lets tests say how long stopping may take.
const ClosePatience = closePatience
