-- What became of one attempt. Repeatable; an older attempt's "sent" is evidence, its "not sent" is nothing.
-- p_outcome: sent | not_sent | failed | unknown. Returns the status in which the message is left.
CREATE FUNCTION engine_settle(
  p_message uuid, p_channel uuid, p_lease bigint, p_attempt integer, p_outcome text, p_provider_id text,
  p_code text, p_detail text, p_wait double precision, p_lane_wait double precision,
  p_counts_as_fault boolean, p_hold_after integer)
RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
DECLARE l lanes; m record; r record; t timestamptz; stream_state text; result text; own boolean;
BEGIN
  SELECT * INTO l FROM lanes WHERE channel_id = p_channel FOR UPDATE;
  SELECT status, lease, attempt, priority, stream_id, sending_at, is_new_person, doubted INTO m
    FROM messages WHERE id = p_message FOR UPDATE;
  t := clock_timestamp();
  result := m.status;
  -- What a failure says of a lane with a rate, each of its messages in flight says.
  own := l.rate IS NOT NULL OR l.lease = p_lease AND l.busy_message = p_message;

  IF p_outcome = 'sent' THEN
    result := engine_evidence(p_message, p_channel, p_provider_id, p_attempt, 3, t);
  ELSIF m.status = 'sending' AND m.lease = p_lease AND m.attempt = p_attempt THEN
    IF p_outcome = 'unknown' THEN
      UPDATE messages SET error_code = p_code, error_detail = p_detail, error_sent = 'maybe', updated_at = t
        WHERE id = p_message;
    ELSE
      SELECT state INTO stream_state FROM streams WHERE id = m.stream_id;
      -- This attempt did not leave; of a retried doubt an earlier one may have.
      result := CASE WHEN p_outcome <> 'failed' AND stream_state IS DISTINCT FROM 'canceled' THEN 'queued'
                     WHEN m.doubted THEN 'in_doubt' WHEN p_outcome = 'failed' THEN 'failed' ELSE 'canceled' END;
      UPDATE messages SET status = result, lease = NULL, updated_at = t,
          provider_id = CASE WHEN m.doubted THEN provider_id END,
          error_code = p_code, error_detail = p_detail,
          error_sent = CASE WHEN result = 'in_doubt' THEN 'maybe' ELSE 'no' END,
          faults = faults + p_counts_as_fault::integer,
          not_before = CASE WHEN result = 'queued' AND p_wait > 0
                            THEN t + make_interval(secs => p_wait) ELSE NULL END,
          waiting_code = CASE WHEN result = 'queued' THEN p_code ELSE '' END,
          waiting_until = CASE WHEN result = 'queued' AND p_wait > 0
                               THEN t + make_interval(secs => p_wait) ELSE NULL END,
          history = history || jsonb_build_object(
            'attempt', p_attempt, 'begun_at', m.sending_at, 'ended_at', t, 'code', p_code, 'sent', 'no')
        WHERE id = p_message;
      -- Proven not to have left: its places in the day are given back, within the day that counts now.
      IF m.sending_at >= l.day_starts_at THEN
        UPDATE lanes SET used = greatest(used - 1, 0),
            used_new = greatest(used_new - m.is_new_person::integer, 0) WHERE channel_id = p_channel;
      END IF;
    END IF;
  END IF;

  IF own THEN
    UPDATE lanes SET busy_message = NULL, busy_until = NULL,
        -- Gaps count from the end of one call to the gate of the next.
        any_at = greatest(any_at, t + make_interval(secs => gap_now)),
        broadcast_at = CASE WHEN m.priority = 2
          THEN greatest(broadcast_at, t + make_interval(secs => broadcast_gap_now)) ELSE broadcast_at END,
        failures = CASE WHEN p_lane_wait > 0 OR p_outcome = 'unknown' THEN failures + 1 ELSE 0 END
      WHERE channel_id = p_channel;
    UPDATE lanes SET
        holds = CASE WHEN failures >= p_hold_after AND NOT holds @> ARRAY['gateway_failing']::varchar[]
                     THEN holds || ARRAY['gateway_failing']::varchar[] ELSE holds END,
        next_at = greatest(any_at, t + make_interval(secs => p_lane_wait))
      WHERE channel_id = p_channel;
  END IF;
  RETURN result;
END $$;
