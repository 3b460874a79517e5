-- There may be work: look now. Moving next_at earlier is free of harm; the gate keeps the pace.
CREATE FUNCTION engine_wake(p_channels uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM 1 FROM lanes WHERE channel_id = ANY (p_channels) ORDER BY channel_id FOR UPDATE;
  -- A statement of its own: the one that waited for the lock still sees next_at as it was before.
  UPDATE lanes SET next_at = clock_timestamp()
    WHERE channel_id = ANY (p_channels) AND (next_at IS NULL OR next_at > clock_timestamp());
  PERFORM pg_notify('lanes', '');
END $$;
