-- Leases that are over: the lane is free whatever its message's state; a claim never begun is queued again
-- (or canceled with its stream), a begun one waits on for evidence. Gaps as a settle sets them.
CREATE FUNCTION engine_free(p_limit integer, p_lease_seconds double precision DEFAULT 20) RETURNS integer
LANGUAGE plpgsql VOLATILE AS $$
DECLARE l lanes; t timestamptz; freed integer := 0; kind integer;
BEGIN
  FOR l IN SELECT * FROM lanes WHERE busy_message IS NOT NULL AND busy_until < clock_timestamp()
           ORDER BY busy_until LIMIT p_limit FOR UPDATE SKIP LOCKED LOOP
    t := clock_timestamp();
    UPDATE messages m SET lease = NULL, updated_at = t, status = back.status,
        error_code = CASE back.status WHEN 'in_doubt' THEN 'outcome_unknown' WHEN 'canceled' THEN 'broadcast_canceled'
                                      ELSE m.error_code END,
        error_sent = CASE back.status WHEN 'in_doubt' THEN 'maybe' ELSE m.error_sent END
      FROM (
        SELECT mine.id, CASE WHEN s.state IS DISTINCT FROM 'canceled' THEN 'queued'
                             WHEN mine.doubted THEN 'in_doubt' ELSE 'canceled' END AS status
        FROM messages mine LEFT JOIN streams s ON s.id = mine.stream_id WHERE mine.id = l.busy_message
      ) AS back
      WHERE m.id = back.id AND m.status = 'claimed' AND m.lease = l.lease;
    SELECT priority INTO kind FROM messages WHERE id = l.busy_message;
    UPDATE lanes SET busy_message = NULL, busy_until = NULL,
        any_at = greatest(any_at, t + make_interval(secs => gap_now)),
        broadcast_at = CASE WHEN kind = 2 THEN greatest(broadcast_at, t + make_interval(secs => broadcast_gap_now))
                            ELSE broadcast_at END,
        next_at = greatest(any_at, t)
      WHERE channel_id = l.channel_id;
    freed := freed + 1;
  END LOOP;
  -- Lanes with a rate are never busy: the leases of their claims are counted from the claim.
  FOR l IN SELECT * FROM lanes WHERE rate IS NOT NULL AND EXISTS (
             SELECT 1 FROM messages m WHERE m.channel_id = lanes.channel_id AND m.status = 'claimed'
               AND m.updated_at < clock_timestamp() - make_interval(secs => p_lease_seconds))
           ORDER BY channel_id LIMIT p_limit FOR UPDATE SKIP LOCKED LOOP
    t := clock_timestamp();
    UPDATE messages m SET lease = NULL, updated_at = t,
        status = CASE WHEN NOT EXISTS (SELECT 1 FROM streams s WHERE s.id = m.stream_id AND s.state = 'canceled')
                      THEN 'queued' WHEN m.doubted THEN 'in_doubt' ELSE 'canceled' END,
        error_sent = CASE WHEN m.doubted THEN 'maybe' ELSE m.error_sent END
      WHERE m.id IN (SELECT id FROM messages WHERE channel_id = l.channel_id AND status = 'claimed'
          AND updated_at < t - make_interval(secs => p_lease_seconds) ORDER BY id FOR UPDATE);
    UPDATE lanes SET next_at = t WHERE channel_id = l.channel_id;
    freed := freed + 1;
  END LOOP;
  RETURN freed;
END $$;
