-- The verdict on a claimed message, by the lane, stream and person as they are now. Changes nothing.
CREATE FUNCTION engine_judge(
  p_message uuid, p_channel uuid, p_lease bigint, p_send_ttl double precision,
  OUT verdict text, OUT code text, OUT until_at timestamptz)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE l lanes; m record; s record; c record; t timestamptz; twice boolean;
BEGIN
  SELECT * INTO l FROM lanes WHERE channel_id = p_channel;
  SELECT status, lease, priority, stream_id, contact_id, not_before, expires_at INTO m
    FROM messages WHERE id = p_message;
  SELECT state, expires_at INTO s FROM streams WHERE id = m.stream_id;
  SELECT is_blocked, is_on_hold INTO c FROM contacts WHERE id = m.contact_id;
  -- Two that were frozen as two people may be one by now; what was begun for either is his message.
  twice := m.stream_id IS NOT NULL AND EXISTS (
    SELECT 1 FROM messages other
    WHERE other.contact_id = m.contact_id AND other.stream_id = m.stream_id AND other.id <> p_message
      AND (other.status IN ('sending', 'sent', 'delivered', 'read', 'played', 'in_doubt')
           OR other.status = 'failed' AND other.error_sent = 'maybe'));
  t := clock_timestamp();

  IF l.lease IS DISTINCT FROM p_lease OR l.busy_message IS DISTINCT FROM p_message
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
  ELSIF l.day_ends_at <= t THEN
    verdict := 'figures_stale'; code := 'figures_stale';
  ELSIF m.priority > 0 AND l.open_until <= t + make_interval(secs => p_send_ttl) THEN
    -- What can't leave before closing waits; the policy tells for which opening.
    verdict := 'figures_stale'; code := 'figures_stale';
  ELSIF m.priority > 0 AND l.open_from > t THEN
    verdict := 'lane_later'; code := 'outside_window'; until_at := l.open_from;
  ELSIF l.used >= l.cap_hard OR (m.priority > 0 AND l.used >= l.cap_soft) THEN
    verdict := 'lane_later'; code := 'daily_limit'; until_at := l.day_ends_at;
  ELSIF l.any_at > t THEN
    verdict := 'lane_later'; code := 'pace'; until_at := l.any_at;
  ELSIF m.priority = 2 AND l.broadcast_at > t THEN
    verdict := 'lane_later'; code := 'pace'; until_at := l.broadcast_at;
  ELSE
    verdict := 'go'; code := '';
  END IF;
END $$;
