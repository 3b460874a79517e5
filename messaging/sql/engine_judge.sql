-- The verdict on a claimed message at p_now, by the lane, stream and person as they are now. Changes nothing.
-- The same clauses in the same order: messaging.verdicts (a property test compares the two).
CREATE FUNCTION engine_judge(
  p_message uuid, p_channel uuid, p_lease bigint, p_send_ttl double precision, p_now timestamptz,
  OUT verdict text, OUT code text, OUT until_at timestamptz, OUT is_new boolean)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE l lanes; m record; s record; c record; t timestamptz := p_now; twice boolean; leaves_by timestamptz;
BEGIN
  SELECT * INTO l FROM lanes WHERE channel_id = p_channel;
  SELECT status, lease, priority, stream_id, contact_id, not_before, expires_at INTO m
    FROM messages WHERE id = p_message;
  SELECT state, expires_at, next_at, open_until INTO s FROM streams WHERE id = m.stream_id;
  SELECT is_blocked, is_on_hold INTO c FROM contacts WHERE id = m.contact_id;
  -- Two that were frozen as two people may be one by now; what was begun for either is his message.
  twice := m.stream_id IS NOT NULL AND EXISTS (
    SELECT 1 FROM messages other
    WHERE other.contact_id = m.contact_id AND other.stream_id = m.stream_id AND other.id <> p_message
      AND (other.status IN ('sending', 'sent', 'delivered', 'read', 'played', 'in_doubt')
           OR other.status = 'failed' AND other.error_sent = 'maybe'));
  is_new := m.contact_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM messages other
    WHERE other.contact_id = m.contact_id AND other.id <> p_message
      AND (other.status IN ('sending', 'sent', 'delivered', 'read', 'played', 'in_doubt', 'received')
           OR other.status = 'failed' AND other.error_sent = 'maybe'));
  leaves_by := t + make_interval(secs => p_send_ttl);

  -- A lane with a rate has many in flight, each under the lease of its slice.
  IF l.rate IS NULL AND (l.lease IS DISTINCT FROM p_lease OR l.busy_message IS DISTINCT FROM p_message)
     OR m.status IS DISTINCT FROM 'claimed' OR m.lease IS DISTINCT FROM p_lease THEN
    verdict := 'stale'; code := 'stale';
  ELSIF s.state IN ('canceled', 'ended') THEN
    verdict := 'never'; code := 'broadcast_canceled';
  ELSIF m.priority = 2 AND m.contact_id IS NULL THEN
    -- Whoever was erased can't be asked whether he may be written to.
    verdict := 'never'; code := 'contact_erased';
  ELSIF m.priority > 0 AND c.is_blocked THEN
    verdict := 'never'; code := 'contact_blocked';
  ELSIF m.priority > 0 AND c.is_on_hold THEN
    verdict := 'never'; code := 'contact_on_hold';
  ELSIF twice THEN
    verdict := 'never'; code := 'duplicate';
  ELSIF m.expires_at <= t OR s.expires_at <= t THEN
    verdict := 'never'; code := 'expired';
  ELSIF s.state = 'paused' THEN
    verdict := 'stream_later'; code := 'broadcast_paused';
  ELSIF m.not_before > t THEN
    verdict := 'message_later'; code := 'retry_wait'; until_at := m.not_before;
  ELSIF NOT l.connected THEN
    verdict := 'lane_later'; code := 'channel_disconnected';
  ELSIF cardinality(l.holds) > 0 THEN
    verdict := 'lane_later'; code := l.holds[1];
  ELSIF least(l.figures_until, l.day_ends_at) <= t OR m.priority > 0 AND l.open_until <= leaves_by OR s.open_until <= leaves_by THEN
    -- Other figures hold by now; and what can't leave before closing waits for an opening that the policy tells.
    verdict := 'figures_stale'; code := 'figures_stale';
  ELSIF m.priority = 2 AND l.barred <> '' THEN
    verdict := 'stream_later'; code := l.barred; until_at := l.barred_until;
  ELSIF m.priority > 0 AND l.open_from > t THEN
    verdict := 'lane_later'; code := 'outside_window'; until_at := l.open_from;
  ELSIF s.next_at > t THEN
    verdict := 'stream_later'; code := 'outside_window'; until_at := s.next_at;
  ELSIF l.used >= l.cap_hard OR (m.priority > 0 AND l.used >= l.cap_soft) THEN
    verdict := 'lane_later'; code := 'daily_limit'; until_at := l.day_ends_at;
  ELSIF m.priority > 0 AND is_new AND l.restricted <> '' THEN
    verdict := 'message_later'; code := 'channel_restricted'; until_at := l.restricted_until;
  ELSIF m.priority > 0 AND is_new AND l.used_new >= l.cap_new THEN
    verdict := 'message_later'; code := 'new_people_limit'; until_at := l.day_ends_at;
  ELSIF l.rate IS NULL AND l.any_at > t THEN
    verdict := 'lane_later'; code := 'pace'; until_at := l.any_at;
  ELSIF l.rate IS NULL AND m.priority = 2 AND l.broadcast_at > t THEN
    verdict := 'lane_later'; code := 'pace'; until_at := l.broadcast_at;
  ELSE
    verdict := 'go'; code := '';
  END IF;
END $$;
